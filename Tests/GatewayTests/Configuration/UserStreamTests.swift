// `[stream.NAME]`: valid tables, messages for invalid ones, and printing.
import Configuration
import Support
import Testing

import Daemon
import Setup

@Suite struct UserStreamTests {
    @Test func table_declaresAStream_withItsDefaults() throws {
        let streams = try load("[stream.weather]\n[stream.door_2]\nmax_rate = 0.5").values
            .userStreams
        #expect(streams.map(\.name) == ["weather", "door_2"])
        #expect(streams.map(\.wire) == ["weather", "door_2"])
        #expect(streams.map(\.maxRate) == [100, 0.5])
        #expect(streams.map(\.maxRecordBytes) == [16_000, 16_000])
        #expect(try load("").values.userStreams == [])
    }

    @Test func keys_standInAnyFormOfTOML() throws {
        for text in [
            "[stream.a]\nwire = \"x\"\nmax_rate = 5\nmax_record_bytes = \"1kB\"",
            "stream.a.wire = \"x\"\nstream.a.max_rate = 5\nstream.a.max_record_bytes = 1000",
            "[stream]\na = { wire = \"x\", max_rate = 5.0, max_record_bytes = \"1 kB\" }",
        ] {
            var expected = UserStream(name: "a")
            (expected.wire, expected.maxRate, expected.maxRecordBytes) = ("x", 5, 1000)
            #expect(try load(text).values.userStreams == [expected], "\(text)")
        }
    }

    private static let keys = "wire, max_rate, max_record_bytes, mqtt, mqtt_time, marks_audio"

    // Not in the attribute: Swift 6.0.3 crashes on an interpolation there.
    private static let wrongTables: [(String, [String])] = [
        (
            "stream = 5",
            ["w.toml:1: stream: found an integer; allowed: a table for each stream: [stream.NAME]"]
        ),
        (
            "[stream]\na = 5",
            [
                "w.toml:2: stream.a: found an integer; allowed: a table: [stream.weather] and its keys"
            ]
        ),
        (
            "[stream.Weather]\nwire = 5",
            [
                "w.toml:1: stream.Weather: \"Weather\" is not a valid stream name; "
                    + "allowed: 1 to 32 of the characters a-z 0-9 _"
            ]
        ),
        (
            "[stream.\"a.b\"]\n[stream.\"../x\"]",
            [
                "w.toml:1: stream.\"a.b\": \"a.b\" is not a valid stream name; "
                    + "allowed: 1 to 32 of the characters a-z 0-9 _",
                "w.toml:2: stream.\"../x\": \"../x\" is not a valid stream name; "
                    + "allowed: 1 to 32 of the characters a-z 0-9 _",
            ]
        ),
        (
            "[stream.audio]",
            [
                "w.toml:1: stream.audio: audio is a stream of the gateway's own; "
                    + "allowed: 1 to 32 of the characters a-z 0-9 _"
            ]
        ),
        (
            "[stream.a]\nmax_rates = 5\ncolor = 1",
            [
                "w.toml:2: stream.a.max_rates: unknown key; did you mean max_rate?; allowed: \(keys)",
                "w.toml:3: stream.a.color: unknown key; allowed: \(keys)",
            ]
        ),
        (
            "[stream.a]\nmax_rate = 0\nwire = \"a b\"\nmax_record_bytes = \"1MB\"",
            [
                "w.toml:2: stream.a.max_rate: 0 is out of range; "
                    + "allowed: a number from 0.001 to 100000 records per second",
                "w.toml:3: stream.a.wire: \"a b\" is not a valid name for the wire; "
                    + "allowed: 1 to 64 of the characters A-Z a-z 0-9 _ -, no - first",
                "w.toml:4: stream.a.max_record_bytes: 1000000 bytes is out of range; allowed: a size "
                    + "from 16 to 64KiB (number and unit: kB, MB, GB, KiB, MiB, GiB; or bytes)",
            ]
        ),
        (
            "[stream.a]\nmax_rate = 0.0009",
            [
                "w.toml:2: stream.a.max_rate: 0.0009 is out of range; "
                    + "allowed: a number from 0.001 to 100000 records per second"
            ]
        ),
        (
            "[streams.weather]",
            ["w.toml:1: streams.weather: unknown section; did you mean [stream.weather]?"]
        ),
        ("[strea]", ["w.toml:1: strea: unknown section; did you mean stream?"]),
    ]

    @Test(arguments: wrongTables)
    func wrongTable_isReportedWithItsLine(text: String, expected: [String]) {
        #expect(problems(text) == expected)
    }

    @Test func namesOnTheWire_areEachAlone() {
        #expect(
            problems("[stream.a]\nwire = \"waypost_events\"\n[stream.b]\n[stream.c]\nwire = \"b\"")
                == [
                    "w.toml:2: stream.a: \"waypost_events\" is the name on the wire of streams.events, "
                        + "too; allowed: a name for each stream alone",
                    "w.toml:5: stream.c: \"b\" is the name on the wire of stream.b, too; "
                        + "allowed: a name for each stream alone",
                ]
        )
        #expect(problems("[streams]\naudio = \"w\"\n[stream.w]").count == 1)
        #expect(problems("[stream.w]", ["WAYPOST_STREAM_W_WIRE": "waypost_events"]).count == 1)
    }

    @Test func streams_haveALimit() throws {
        let tables = (1...32).map { "[stream.s\($0)]\n" }.joined()
        #expect(try load(tables).values.userStreams.count == 32)
        #expect(
            problems(tables + "[stream.more]\nwire = \"x\"") == [
                "w.toml:33: stream.more: is one stream too many; allowed: up to 32 tables [stream.NAME]"
            ]
        )
    }

    @Test func variable_overridesAKeyOfADeclaredStream() throws {
        let loaded = try load(
            "upload.endpoint = \"https://a.example/\"\n[stream.max_rate]\n[stream.a_b]\nwire = \"x\"",
            [
                "WAYPOST_STREAM_A_B_WIRE": "y", "WAYPOST_STREAM_A_B_MAX_RATE": "7",
                "WAYPOST_STREAM_MAX_RATE_MAX_RATE": "8", "WAYPOST_STREAM_A_B_MAX_RECORD_BYTES": "",
                "WAYPOST_STREAM_C_WIRE": "z", "WAYPOST_STREAM_A_B_WIRES": "z",
            ]
        )
        #expect(loaded.values.userStreams.map(\.wire) == ["max_rate", "y"])
        #expect(loaded.values.userStreams.map(\.maxRate) == [8, 7])
        #expect(
            loaded.warnings.map(\.description) == [
                "WAYPOST_STREAM_A_B_MAX_RECORD_BYTES: is empty, so it overrides nothing",
                "WAYPOST_STREAM_A_B_WIRES: is not a configuration key",
                "WAYPOST_STREAM_C_WIRE: names a stream that is not configured; [stream.c] declares it",
            ]
        )
        #expect(
            problems("[stream.a]", ["WAYPOST_STREAM_A_MAX_RATE": "x"]) == [
                "WAYPOST_STREAM_A_MAX_RATE: found the text \"x\"; "
                    + "allowed: a number from 0.001 to 100000 records per second"
            ]
        )
    }

    @Test func show_roundTripsValues_withTheirOrigins() throws {
        let loaded = try load(
            "[stream.b]\nmax_rate = 7\n[stream.3d]\nwire = \"x-Y\"\nmax_record_bytes = \"2KiB\"",
            ["WAYPOST_STREAM_B_WIRE": "w"]
        )
        #expect(try load(loaded.shown).values == loaded.values)
        #expect(
            loaded.shown.hasSuffix(
                """

                [stream.b]
                wire = "w"  # environment WAYPOST_STREAM_B_WIRE
                max_rate = 7.0  # w.toml:2
                max_record_bytes = "16kB"  # default
                mqtt = []  # default
                mqtt_time = "timestamp"  # default
                marks_audio = false  # default

                [stream.3d]
                wire = "x-Y"  # w.toml:4
                max_rate = 100.0  # default
                max_record_bytes = "2KiB"  # w.toml:5
                mqtt = []  # default
                mqtt_time = "timestamp"  # default
                marks_audio = false  # default

                """
            )
        )
    }

    @Test func default_showsAnExampleThatDeclaresNothing() throws {
        #expect(Configuration.defaultText.contains("\n#[stream.weather]\n"))
        #expect(Configuration.defaultText.contains("\n#max_rate = 100.0\n"))
        #expect(try load(Configuration.defaultText).values.userStreams == [])
    }

    private static let broker = "[mqtt]\nurl = \"mqtt://h\"\n"

    @Test func topics_areRead() throws {
        let loaded = try load(
            Self.broker
                + "[stream.a]\nmqtt = [\"tele/+/SENSOR\", \"b/#\"]\n[stream.b]\nmqtt = [\"c\"]"
        )
        #expect(loaded.values.userStreams.map(\.topics) == [["tele/+/SENSOR", "b/#"], ["c"]])
    }

    @Test(arguments: ["a#", "", "$share/g/a", "a/#/b"])
    func wrongTopic_isRefused(topic: String) {
        let found = problems(Self.broker + "[stream.a]\nmqtt = [\"\(topic)\"]")
        #expect(found.count == 1 && found[0].hasPrefix("w.toml:4: stream.a.mqtt: "), "\(found)")
    }

    /// A broker may send a message once per filter.
    @Test func topicsForTheSameMessages_areRefused() {
        let text = "[stream.a]\nmqtt = [\"tele/#\"]\n[stream.b]\nmqtt = [\"tele/+/SENSOR\"]"
        #expect(
            problems(Self.broker + text) == [
                "w.toml:6: stream.b.mqtt: \"tele/+/SENSOR\" is for the same messages as \"tele/#\" of "
                    + "stream.a.mqtt; allowed: filters of which none matches a topic of another"
            ]
        )
    }

    @Test func topics_needABroker() {
        let found = problems("[stream.a]\nmqtt = [\"a\"]")
        #expect(found.count == 1 && found[0].contains("needs a broker: mqtt.url is not set"))
    }

    /// The topics that the gateway publishes have the id that it made.
    @Test func filterOfOwnMessages_isFoundByTheStoredID() throws {
        let (folder, id) = (TemporaryFolder(), "0a1b2c3d-0000-4000-8000-000000000001")
        let text = Self.broker + "[stream.a]\nmqtt = [\"home/\(id)/health\"]"
        var configuration = try load(text).values
        configuration.stateDirectory = folder.path
        #expect(configuration.filtersOfOwnMessages == [])
        _ = try folder.write(id, to: "device_id")
        #expect(configuration.filtersOfOwnMessages.count == 1)
    }

    /// As a token over http://: only to this machine, or if it is allowed.
    @Test func passwordInTheOpen_isRefused() {
        let file = "password_file = \"/p\"\n"
        #expect(problems(Self.broker + file).count == 1)
        #expect(problems(Self.broker + file + "allow_plaintext = true").isEmpty)
        #expect(problems("[mqtt]\nurl = \"mqtt://127.0.0.1\"\n" + file).isEmpty)
        #expect(problems("[mqtt]\nurl = \"mqtts://h\"\n" + file).isEmpty)
        #expect(problems(Self.broker).isEmpty)
    }
}
