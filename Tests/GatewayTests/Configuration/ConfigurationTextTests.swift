// The printed forms of the configuration: the full commented file and the effective values.
import Audio
import Configuration
import Testing
import Upload

import Daemon
import Setup

@Suite struct ConfigurationTextTests {
    /// The list of keys in waypost.toml(5) of this version; nil for a key without a default.
    private static let listed: [(String, String?)] = [
        ("device_id", "\"auto\""),
        ("state_directory", "\"/var/lib/waypost\""),
        ("runtime_directory", "\"/run/waypost\""),
        ("schedule_offset", "\"UTC\""),
        ("upload.required", "true"),
        ("upload.destination", "\"ingest\""),
        ("upload.endpoint", nil),
        ("upload.allow_plaintext", "false"),
        ("upload.token_file", nil),
        ("upload.bucket_url", nil),
        ("upload.region", "\"us-east-1\""),
        ("upload.credentials_file", nil),
        ("upload.ca_file", nil),
        ("upload.pinned_public_key", nil),
        ("upload.interval", "\"5m\""),
        ("upload.timeout", "\"30s\""),
        ("upload.max_batch_bytes", "\"8MiB\""),
        ("upload.compression", "\"gzip\""),
        ("upload.format", "\"auto\""),
        ("upload.max_rate", nil),
        ("upload.daily_budget", nil),
        ("upload.quiet", nil),
        ("upload.max_attempts", "5"),
        ("upload.heartbeat_url", nil),
        ("beacons.enabled", "true"),
        ("beacons.source", "\"hci0\""),
        ("beacons.replay_speed", "1.0"),
        ("beacons.scan", "\"passive\""),
        ("beacons.scan_interval", "\"100ms\""),
        ("beacons.scan_window", "\"50ms\""),
        ("beacons.allow", "[]"),
        ("beacons.deny", "[]"),
        ("beacons.max_rate", "4.0"),
        ("beacons.unknown", "false"),
        ("beacons.bindkeys", "{}"),
        ("beacons.schedule", "[]"),
        ("location.enabled", "true"),
        ("location.gpsd", "\"localhost:2947\""),
        ("location.interval", "\"10s\""),
        ("location.min_distance", "0.0"),
        ("location.fixed", nil),
        ("audio.enabled", "true"),
        ("audio.device", "\"default\""),
        ("audio.channel", "\"auto\""),
        ("audio.rate", "16000"),
        ("audio.chunk", "\"30s\""),
        ("audio.overlap", "\"2s\""),
        ("audio.codec", "\"opus\""),
        ("audio.bitrate", "24000"),
        ("audio.min_level_db", nil),
        ("audio.silence", "\"report\""),
        ("audio.upload", "\"all\""),
        ("audio.mark_margin", "\"15s\""),
        ("audio.fill_budget", "false"),
        ("audio.schedule", "[]"),
        ("audio.duty", nil),
        ("site.name", nil),
        ("site.fields", "{}"),
        ("storage.commit_interval", "\"1s\""),
        ("storage.retention", "\"3d\""),
        ("storage.max_size", "\"auto\""),
        ("storage.warn_free", "\"100MB\""),
        ("storage.critical_free", "\"50MB\""),
        ("streams.location", "\"linux_gpsd_location\""),
        ("streams.audio", "\"linux_alsa_audio\""),
        ("streams.beacons", "\"linux_bluez_beacons\""),
        ("streams.events", "\"waypost_events\""),
        ("streams.surveys", "\"waypost_surveys\""),
        ("streams.health", "\"waypost_health\""),
        ("streams.effort", "\"waypost_effort\""),
        ("streams.replies", "\"waypost_replies\""),
        ("health.enabled", "true"),
        ("health.interval", nil),
        ("mqtt.url", nil),
        ("mqtt.allow_plaintext", "false"),
        ("mqtt.username", nil),
        ("mqtt.password_file", nil),
        ("mqtt.ca_file", nil),
        ("mqtt.client_id", nil),
        ("mqtt.publish", "true"),
        ("mqtt.topic", "\"home/<device_id>\""),
        ("mqtt.interval", "\"10s\""),
        ("mqtt.home_assistant", "true"),
        ("mqtt.discovery_prefix", "\"homeassistant\""),
        ("proxy.esphome", "false"),
        ("proxy.key_file", nil),
        ("proxy.listen", "\"[::]:6053\""),
        ("proxy.name", nil),
        ("proxy.area", nil),
        ("effort.enabled", "true"),
        ("remote.allow", "[]"),
        ("remote.key", nil),
        ("metrics.textfile", nil),
        ("led.name", "\"auto\""),
        ("import.stick", "true"),
        ("log.level", "\"info\""),
    ]

    @Test func defaults_areThoseOfTheManualPage() {
        let keys = Configuration.table.keys
        #expect(keys.map(\.path) == Self.listed.map(\.0))
        #expect(keys.map(\.defaultText) == Self.listed.map(\.1))
    }

    @Test func keys_haveEachTheirOwnVariable() {
        let variables = Configuration.table.keys.map(\.variable)
        #expect(Set(variables).count == variables.count)
        #expect(variables.contains("WAYPOST_UPLOAD_ENDPOINT"))
        #expect(variables.contains("WAYPOST_DEVICE_ID"))
    }

    @Test func default_readsBackAsTheDefaults() throws {
        let loaded = try load(Configuration.defaultText)
        #expect(loaded.values == Configuration())
        let withDefault = Self.listed.filter { $0.1 != nil }.map(\.0)
        #expect(Set(loaded.origins.keys) == Set(withDefault))
    }

    @Test func default_showsUsableExamplesForKeysWithoutDefault() throws {
        let lines = Configuration.defaultText.split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        let examples = lines.map { $0.hasPrefix("#") && !$0.hasPrefix("# ") ? $0.dropFirst() : $0 }
        let loaded = try load(examples.joined(separator: "\n"))
        // Also the example of a user stream: its table and six keys.
        #expect(loaded.origins.count == Self.listed.count + 7)
        #expect(loaded.values.upload.endpoint == "https://example.org/api/ingest")
        #expect(loaded.values.upload.maxRate == 100_000)
        #expect(loaded.values.audio.minimumLevel == -60)
        #expect(loaded.warnings == [])
    }

    @Test func default_explainsEachKeyAboveItsLine() {
        let text = Configuration.defaultText
        for key in Configuration.table.keys {
            let line = key.defaultText.map { "\(key.name) = \($0)" } ?? "#\(key.name) = "
            let restart = key.needsRestart ? "# A change needs a restart.\n" : ""
            #expect(text.contains("# \(key.summary)\n\(restart)# Allowed: \(key.allowed)\n\(line)"))
        }
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 })
    }

    /// A file in which no key has its default.
    static let other = #"""
        device_id = "pi-17.east"
        state_directory = "/srv/way \"post\"/é"
        runtime_directory = "/run/other"
        schedule_offset = "-03:30"
        [upload]
        required = false
        destination = "s3"
        endpoint = "https://[2001:db8::1]:8443/api/ingest?v=1"
        allow_plaintext = true
        token_file = "/etc/waypost/token"
        bucket_url = "https://s3.example.org:9000/field-data/pi"
        region = "eu-west-1"
        credentials_file = "/etc/waypost/s3"
        ca_file = "/etc/waypost/ca.pem"
        pinned_public_key = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        interval = "90s"
        timeout = "1.5s"
        max_batch_bytes = 1234567
        compression = "none"
        format = "rows"
        max_rate = "1.5kB"
        daily_budget = "20MB"
        quiet = "22:00-06:00 +02:00"
        max_attempts = 7
        heartbeat_url = "https://h/ping"
        [beacons]
        enabled = false
        source = "h4:[::1]:9000"
        replay_speed = 0
        scan = "active"
        scan_interval = "10.24s"
        scan_window = "2.5ms"
        allow = ["kind:ibeacon", "C6:00:*"]
        deny = ["*"]
        max_rate = 0.25
        unknown = true
        schedule = ["06:00..18:00"]
        [location]
        enabled = false
        gpsd = "[::1]:2947"
        interval = "0s"
        min_distance = 2.5
        fixed = "46.46,6.84"
        [audio]
        enabled = false
        device = "hw:CARD=Mic,DEV=0, plug:'hw:1,0', default"
        channel = 2
        rate = 44100
        chunk = "10s"
        overlap = "20ms"
        codec = "wav"
        bitrate = 16000
        min_level_db = -50
        silence = "ok"
        upload = "marked"
        mark_margin = "20s"
        fill_budget = true
        schedule = ["dusk..dawn"]
        duty = "1m/10m"
        [site]
        name = "lake"
        [storage]
        commit_interval = "250ms"
        retention = "36h"
        max_size = "4GiB"
        warn_free = 0
        critical_free = 0
        [streams]
        location = "a"
        audio = "b"
        beacons = "c"
        events = "d-1_X"
        surveys = "e"
        health = "h"
        effort = "o"
        replies = "r"
        [health]
        enabled = false
        interval = "7m"
        [mqtt]
        url = "mqtt://[::1]:1884"
        allow_plaintext = true
        username = "u"
        password_file = "/p"
        ca_file = "/c"
        client_id = "i"
        publish = false
        topic = "t/<device_id>"
        interval = "1m"
        home_assistant = false
        discovery_prefix = "ha"
        [proxy]
        key_file = "/k"
        listen = "[::1]:6054"
        name = "roof"
        area = "Roof"
        [effort]
        enabled = false
        [remote]
        allow = ["operate"]
        key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
        [metrics]
        textfile = "/m.prom"
        [led]
        name = "off"
        [import]
        stick = false
        [log]
        level = "debug"
        """#

    @Test func show_readsBackAsTheSameValues() throws {
        let loaded = try load(Self.other)
        // Keys have no line for a map, and there is no proxy without beacons.
        let others = ["beacons.bindkeys", "site.fields", "proxy.esphome"]
        #expect(loaded.origins.count == Self.listed.count - others.count)
        for key in Configuration.table.keys where !others.contains(key.path) {
            let isDefault = key.written(loaded.values) == key.defaultText
            #expect(!isDefault, "\(key.path) is not exercised")
        }
        #expect(try load(loaded.shown).values == loaded.values)
        #expect(try load(try load("").shown).values == Configuration())
    }

    @Test func show_namesWhereEachValueCameFrom() throws {
        let shown = try load("\n[audio]\nrate = 8000\n", ["WAYPOST_AUDIO_BITRATE": "16000"]).shown
        let lines = shown.split(separator: "\n").map(String.init)
        #expect(lines.contains("rate = 8000  # w.toml:3"))
        #expect(lines.contains("bitrate = 16000  # environment WAYPOST_AUDIO_BITRATE"))
        #expect(lines.contains("codec = \"opus\"  # default"))
        #expect(lines.contains("# min_level_db is not set"))
    }

    @Test func show_staysOneCommentALine_whateverTheFileIsCalled() throws {
        let loaded = try Configuration.check(
            Array("device_id = \"x\"".utf8),
            file: "/tmp/a\n[upload]\nrequired = false",
            environment: [:]
        )
        #expect(loaded.shown.hasPrefix("device_id = \"x\"  # /tmp/a?[upload]?required = false:1\n"))
        #expect(try load(loaded.shown).values == loaded.values)
    }

    @Test func show_hidesEncryptionKeys() throws {
        let key = "231d39c1d7cc1ab1aee224cd096db932"
        let shown = try load("[beacons.bindkeys]\n\"54:48:e6:8f:80:a5\" = \"\(key)\"").shown
        #expect(!shown.contains(key))
        #expect(shown.contains("# bindkeys: 1 not shown  # w.toml:1\n"))
    }

    /// A default is defined only as the initial value of its property; all texts follow it.
    @Test func default_isThatOfTheProperty_whereverItIsShown() throws {
        let loaded = try Configuration.check([], file: "waypost.toml", environment: [:])
        let (commented, shown) = (Configuration.defaultText, "\n" + loaded.shown)
        for key in Configuration.table.keys {
            #expect(key.written(loaded.values) == key.defaultText, "\(key.path)")
            guard let text = key.defaultText else { continue }
            #expect(commented.contains("\n\(key.name) = \(text)\n"), "\(key.path)")
            #expect(shown.contains("\n\(key.name) = \(text)  # default\n"), "\(key.path)")
        }
    }
}
