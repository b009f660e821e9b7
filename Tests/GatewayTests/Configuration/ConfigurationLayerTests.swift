// Settings from the server above the device's own file.
import Audio
import Configuration
import Foundation
import Host
import Location
import Remote
import Setup
import Support
import Testing
import Upload

@Suite struct ConfigurationLayerTests {
    private let temporary = TemporaryFolder()

    private static let allowed = "[remote]\nallow = [\"settings\"]\n"

    private func path(_ text: String, _ name: String = "waypost.toml") throws -> String {
        let path = "\(temporary.path)/\(name)"
        let all = "state_directory = \"\(temporary.path)\"\n\(text)"
        try Data(all.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Loads a file with a text of the server above it.
    private func load(
        _ file: String,
        _ text: String,
        environment: [String: String] = [:]
    ) throws -> LoadedConfiguration {
        try Configuration.load(
            path: path(file),
            environment: environment,
            trying: .init(number: 7, text: text)
        )
    }

    private func problems(_ file: String, _ text: String) throws -> [String] {
        do {
            _ = try load(file, text)
            return []
        } catch let errors as ConfigurationErrors {
            return errors.problems.map(\.description)
        }
    }

    @Test func layer_liesAboveTheFile_belowTheEnvironment() throws {
        let file = Self.allowed + "[audio]\nbitrate = 32000\n[location]\ninterval = \"20s\"\n"
        let text = "[audio]\nbitrate = 16000\n[log]\nlevel = \"debug\"\n"
        let loaded = try load(file, text, environment: ["WAYPOST_LOG_LEVEL": "error"])
        #expect(loaded.values.audio.bitrate == 16_000)
        #expect(loaded.values.location.interval == .seconds(20))
        #expect(loaded.values.logLevel == .error)
        #expect(loaded.shown.contains("bitrate = 16000  # settings 7:2"))
        // Without the device's own word it does not count.
        #expect(try load("[audio]\nbitrate = 32000\n", text).values.audio.bitrate == 32_000)
    }

    @Test func onlyMarkedKeys_mayBeSet() throws {
        for text in [
            "device_id = \"x\"\n", "[upload]\nendpoint = \"https://evil.example/api/ingest\"\n",
            "[upload]\ntoken_file = \"/etc/shadow\"\n", "[remote]\nallow = []\n",
            "[remote]\nkey = \"x\"\n", "[mqtt]\nurl = \"mqtt://evil.example\"\n",
            "[audio]\ndevice = \"file:/tmp/x\"\n", "[storage]\nmax_size = \"1MB\"\n",
            "[beacons.bindkeys]\n\"A4:C1:38:00:00:01\" = \"x\"\n", "[site.fields]\na = \"b\"\n",
            "[stream.new]\nmax_rate = 1.0\n", "[streams]\naudio = \"other\"\n",
            "[import]\nstick = true\n", "[metrics]\ntextfile = \"/etc/cron.d/x\"\n",
            "[stream.weather]\nwire = \"other\"\n", "[stream.weather]\nmqtt = [\"#\"]\n",
        ] {
            let found = try problems(Self.allowed + "[stream.weather]\n", text)
            #expect(found.count >= 1, "\(text)")
            #expect(found.allSatisfy { $0.hasPrefix("settings 7:") }, "\(found)")
        }
        let good = """
            schedule_offset = "+01:00"
            [upload]
            interval = "1h"
            quiet = "22:00-06:00"
            [beacons]
            deny = ["*"]
            [audio]
            schedule = ["sunrise-1h..22:00"]
            duty = "1m/10m"
            [stream.weather]
            max_rate = 2.0
            """
        let loaded = try load(Self.allowed + "[stream.weather]\n", good)
        #expect(loaded.values.userStreams.map(\.maxRate) == [2])
        #expect(loaded.values.upload.interval == .seconds(3600))
        // One wrong key refuses the whole text.
        #expect(throws: ConfigurationErrors.self) {
            _ = try load(Self.allowed, "[audio]\nbitrate = 16000\nrate = 8000\n")
        }
    }

    @Test func server_switchesSourcesOff_neverOnAgain() throws {
        let off = try load(Self.allowed, "[audio]\nenabled = false\n")
        #expect(!off.values.audio.isEnabled)
        #expect(
            try problems(Self.allowed + "[audio]\nenabled = false\n", "[audio]\nenabled = true\n")
                == [
                    "settings 7:2: audio.enabled: is switched off by the device's own file, "
                        + "and the server cannot switch it on"
                ]
        )
        #expect(try problems(Self.allowed, "[audio]\nenabled = true\n").isEmpty)
    }

    @Test func keysOfACard_stay() throws {
        _ = try path("", "waypost.toml")
        _ = try path(Self.allowed + "[audio]\nbitrate = 32000\n", "imported.toml")
        let loaded = try Configuration.load(
            path: "\(temporary.path)/waypost.toml",
            environment: [:],
            trying: .init(number: 7, text: "[audio]\nbitrate = 16000\nmin_level_db = -50.0\n")
        )
        #expect(loaded.values.audio.bitrate == 32_000)
        #expect(loaded.values.audio.minimumLevel == -50)
    }

    /// The file has changed since: the program starts without the settings, and says so.
    @Test func storedSettingsThatDoNotFit_areAWarning() throws {
        let stored =
            #"{"current": {"number": 7, "text": "[audio]\nenabled = true\n", "job": "a"}, "#
            + #""state": "kept", "highest": 7}"#
        try Data(stored.utf8)
            .write(to: URL(fileURLWithPath: "\(temporary.path)/\(StoredSettings.fileName)"))
        #expect(try StoredSettings.read(in: temporary.path).current?.number == 7)
        let loaded = try Configuration.load(
            path: path(Self.allowed + "[audio]\nenabled = false\n"),
            environment: [:]
        )
        #expect(!loaded.values.audio.isEnabled)
        #expect(
            loaded.warnings.contains {
                $0.description.contains("the settings of the server are not in force")
            }
        )
    }
}
