// Environment variables override the file: keys, systemd's directories, unknown names.
import Audio
import Beacons
import Configuration
import Queue
import Records
import Testing
import Upload

import Daemon
import Setup

@Suite struct EnvironmentTests {
    @Test func variable_winsOverTheFile() throws {
        let loaded = try load(
            "[upload]\nendpoint = \"https://file.example/\"\nrequired = true",
            [
                "WAYPOST_UPLOAD_ENDPOINT": "https://environment.example/",
                "WAYPOST_UPLOAD_REQUIRED": "false",
                "WAYPOST_DEVICE_ID": "pi-1",
                "WAYPOST_STATE_DIRECTORY": "/srv/state",
                "WAYPOST_UPLOAD_MAX_BATCH_BYTES": "1000000",
                "WAYPOST_UPLOAD_INTERVAL": "10s",
                "WAYPOST_BEACONS_MAX_RATE": "2",
                "WAYPOST_BEACONS_ALLOW": "kind:ruuvi, aa/*",
                "WAYPOST_AUDIO_DEVICE": "hw:0,0, default",
                "WAYPOST_AUDIO_CHANNEL": "3",
                "WAYPOST_AUDIO_MIN_LEVEL_DB": "-40",
                "HOME": "/root",
            ]
        )
        #expect(loaded.values.upload.endpoint == "https://environment.example/")
        #expect(!loaded.values.upload.isRequired)
        #expect(loaded.values.deviceID == "pi-1")
        #expect(loaded.values.stateDirectory == "/srv/state")
        #expect(loaded.values.upload.maxBatchBytes == 1_000_000)
        #expect(loaded.values.upload.interval == .seconds(10))
        #expect(loaded.values.beacons.maxRate == 2)
        #expect(loaded.values.beacons.allow == ["kind:ruuvi", "aa/*"])
        #expect(loaded.values.audio.devices == ["hw:0,0", "default"])
        #expect(loaded.values.audio.channel == 3)
        #expect(loaded.values.audio.minimumLevel == -40)
        #expect(loaded.origins["upload.endpoint"] == .environment("WAYPOST_UPLOAD_ENDPOINT"))
        #expect(loaded.warnings == [])
    }

    @Test func arrayOfTheEnvironment_mayStandThereAsInTheFile() throws {
        let loaded = try load("", ["WAYPOST_BEACONS_ALLOW": #" ["kind:ruuvi", "aa/*"] "#])
        #expect(loaded.values.beacons.allow == ["kind:ruuvi", "aa/*"])
        for wrong in ["[kind:ruuvi", "[1]", "[\"aa\"]\nlog.level = \"info\""] {
            #expect(throws: ConfigurationErrors.self) {
                try load("", ["WAYPOST_BEACONS_ALLOW": wrong])
            }
        }
    }

    @Test func bindkeys_ofTheEnvironmentReplaceThoseOfTheFile() throws {
        let key = "000102030405060708090a0b0c0d0e0f"
        let loaded = try load(
            "[beacons.bindkeys]\n\"00:00:00:00:00:01\" = \"\(key)\"",
            ["WAYPOST_BEACONS_BINDKEYS": "00:00:00:00:00:02=\(key), 00:00:00:00:00:03=\(key)"]
        )
        #expect(
            Set(loaded.values.beacons.bindkeys.keys) == [
                BluetoothAddress(value: 2), BluetoothAddress(value: 3),
            ]
        )
    }

    @Test(arguments: [
        ("WAYPOST_UPLOAD_REQUIRED", "yes", "found the text \"yes\"; allowed: true or false"),
        (
            "WAYPOST_UPLOAD_MAX_ATTEMPTS", "5.5",
            "found the text \"5.5\"; allowed: a whole number from 1 to 100"
        ),
        (
            "WAYPOST_BEACONS_MAX_RATE", "nan",
            "nan is out of range; allowed: a number above 0 to 1000"
        ),
        (
            "WAYPOST_AUDIO_CODEC", "mp3",
            "\"mp3\" is not one of them; allowed: \"opus\", \"flac\", \"aac\", \"wav\""
        ),
        (
            "WAYPOST_UPLOAD_TOKEN_FILE", "5ecret",
            "is not an absolute path: it must begin with /; allowed: an absolute path of at most 1024 bytes"
        ),
        (
            "WAYPOST_BEACONS_BINDKEYS", "5ecret",
            "found no ADDRESS=KEY; allowed: 32 hexadecimal digits under an address, as "
                + "\"A4:C1:38:00:00:01\" = \"…\""
        ),
        (
            "STATE_DIRECTORY", "x",
            "is not an absolute path: it must begin with /; allowed: an absolute path of at most 1024 bytes"
        ),
        (
            "WAYPOST_UPLOAD_ENDPOINT", "http://a.example/",
            "http:// would show the token and the data to anyone on the way; allowed: https://, "
                + "http:// to loopback, or any http:// with upload.allow_plaintext = true"
        ),
    ])
    func wrongValue_namesTheVariable(name: String, value: String, problem: String) {
        #expect(problems("", [name: value]) == ["\(name): \(problem)"])
    }

    @Test func systemdDirectories_winOverEverything() throws {
        let loaded = try load(
            "state_directory = \"/a\"\nruntime_directory = \"/b\"",
            [
                "WAYPOST_STATE_DIRECTORY": "/c",
                "STATE_DIRECTORY": "/var/lib/waypost:/var/lib/other",
                "RUNTIME_DIRECTORY": "/run/waypost.x",
            ]
        )
        #expect(loaded.values.stateDirectory == "/var/lib/waypost")
        #expect(loaded.values.runtimeDirectory == "/run/waypost.x")
        #expect(loaded.origins["state_directory"] == .environment("STATE_DIRECTORY"))
    }

    @Test func emptySystemdDirectory_isAsGoodAsNone() throws {
        let loaded = try load(
            "state_directory = \"/a\"",
            ["STATE_DIRECTORY": "", "RUNTIME_DIRECTORY": ":"]
        )
        #expect(loaded.values.stateDirectory == "/a")
        #expect(loaded.values.runtimeDirectory == "/run/waypost")
    }

    @Test func unknownVariable_isAWarning() throws {
        let loaded = try load(
            "upload.endpoint = \"https://a.example/\"",
            [
                "WAYPOST_UPLOAD_ENDPONT": "5ecret", "WAYPOST_COLOUR": "red", "WAYPOST_CONFIG": "/x",
                "WAYPOST_TEST_PYTHON": "/y", "WAYPOST_AUDIO_RATE": "",
            ]
        )
        #expect(
            loaded.warnings.map(\.description) == [
                "WAYPOST_AUDIO_RATE: is empty, so it overrides nothing",
                "WAYPOST_COLOUR: is not a configuration key",
                "WAYPOST_UPLOAD_ENDPONT: is not a configuration key; did you mean "
                    + "WAYPOST_UPLOAD_ENDPOINT?",
            ]
        )
        #expect(loaded.values.audio.rate == 16_000)
    }
}
