import Foundation
import Support
import Testing

/// The real program, run as a person or a service would.
@Suite struct DaemonTests {
    private final class Fixture: Device {
        init(_ more: String = "") throws {
            try super.init(
                """
                [upload]
                required = false
                [beacons]
                source = "h4:127.0.0.1:1"
                [location]
                gpsd = "127.0.0.1:1"
                [audio]
                device = "nosuchdevice"
                \(more)
                """
            )
        }
    }

    @Test func absentDevices_areReported_andNeverEndTheDaemon() throws {
        let fixture = try Fixture()
        try fixture.start()
        var states: [String: String] = [:]
        try waitUntil("three errors") {
            let sources = try fixture.status()["sources"] as? [String: [String: Any]] ?? [:]
            states = sources.compactMapValues { $0["state"] as? String }
            return states.values.filter { $0 == "error" }.count == 3
        }
        #expect(states == ["beacons": "error", "location": "error", "audio": "error"])
        #expect(fixture.isRunning)
        let screen = try fixture.run("status")
        #expect(screen.status == 1)
        // Over SSH without a terminal, nothing is cut.
        let reasons = try #require(try fixture.status()["reasons"] as? [String])
        #expect(reasons.count >= 3)
        for reason in reasons { #expect(screen.output.contains("  \(reason)\n")) }
        #expect(!screen.output.contains("…"))
        #expect(!screen.output.contains("\u{1B}"))
    }

    /// After going back to an older version: `doctor` called the database well, `status` gave no
    /// reason, and only the journal knew.
    @Test func databaseOfANewerWaypost_isNamedByStatusAndDoctor() throws {
        let device = try Device()
        try device.start()
        #expect(try device.stop() == 0)
        func sql(_ text: String) throws {
            let script =
                "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"
            let database = device.folder + "/state/queue.sqlite"
            let done = try Process.run("/usr/bin/python3", ["-c", script, database, text])
            try #require(done.status == 0, "\(done.error)")
        }
        try sql("PRAGMA user_version=4; CREATE TABLE newer(x)")
        try device.launch()
        try waitUntil("its end") { !device.isRunning }
        #expect(device.daemon?.terminationStatus == 2)
        let why = "the database has schema version 4, this Waypost knows up to 3"
        for arguments in [["status"], ["status", "--json"], ["doctor"]] {
            let reported = try Process.run(
                Tree.program("waypost"),
                arguments + ["--config", device.config]
            )
            #expect(reported.status == 2)
            let words = reported.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words.contains(why), "\(reported.output)")
            #expect(!words.contains("is intact"))
        }
        let led = try String(contentsOfFile: device.folder + "/run/led", encoding: .utf8)
        #expect(led == "critical auto\n")
        try sql("DROP TABLE newer; PRAGMA user_version=3")
        try device.start()
        #expect(try !device.run("status", "--json").output.contains(why))
        #expect(try device.stop() == 0)
        #expect(try !device.run("status", "--json").output.contains("start failed"))
    }

    @Test func status_hasEveryField() throws {
        let fixture = try Fixture()
        try fixture.start()
        let report = try fixture.status()
        let expected: [String: Set<String>] = [
            "daemon": ["running", "pid", "uptime_s", "rss_bytes", "private_bytes", "cpu_s"],
            "clock": ["state", "boot_id", "offset_s"],
            "upload": [
                "last_attempt_at", "last_success_at", "state", "next_sync_at", "bytes_today",
            ],
            "storage": [
                "database_bytes", "free_bytes", "reusable_bytes", "written_bytes",
                "evicted_records", "room_days",
                "state",
            ],
        ]
        for (name, keys) in expected {
            #expect(Set((report[name] as? [String: Any] ?? [:]).keys) == keys, "\(name)")
        }
        for name in [
            "version", "device_id", "state", "reasons", "losses", "recent_errors", "error_totals",
            "remote",
        ] {
            #expect(report[name] != nil, "\(name)")
        }
        let source = (report["sources"] as? [String: [String: Any]])?["beacons"] ?? [:]
        #expect(
            Set(source.keys) == [
                "state", "reason", "code", "last_record_at", "records", "rate_per_s", "dropped",
                "restarts", "device", "detail",
            ]
        )
        let streams = report["streams"] as? [String: [String: Any]] ?? [:]
        #expect(
            // A slow start may have recorded its health and effort already.
            Set(streams.keys).subtracting(["waypost_health", "waypost_effort"]) == [
                "linux_gpsd_location", "linux_alsa_audio", "linux_bluez_beacons", "waypost_events",
            ]
        )
        #expect(
            Set((streams["waypost_events"] ?? [:]).keys) == [
                "pending", "pending_bytes", "in_flight", "quarantined", "oldest_pending_at",
                "uploaded",
                "last_attempt_at", "last_success_at", "last_error", "next_attempt_at",
            ]
        )
    }

    @Test func sigterm_stopsDaemon_andStatusShowsLastKnownState() throws {
        let fixture = try Fixture()
        try fixture.start()
        #expect(try fixture.stop() == 0)
        let after = try fixture.run("status", "--json")
        #expect(after.status == 2)
        #expect(after.output.contains(#""running":false"#))
        #expect(after.output.contains("daemon not running"))
    }

    @Test func statusBeforeTheFirstStart_isAnObjectAllTheSame() throws {
        let fixture = try Fixture()
        let never = try fixture.run("status", "--json")
        #expect(never.status == 2)
        #expect(never.error.contains("waypost is not running"))
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(never.output.utf8)) as? [String: Any]
        )
        #expect(report["state"] as? String == "critical")
        #expect((report["daemon"] as? [String: Any])?["running"] as? Bool == false)
        #expect((report["streams"] as? [String: Any])?.count == 4)
    }

    @Test func sighup_reloadsConfiguration_keepingOldIfInvalid() throws {
        let fixture = try Fixture()
        try fixture.start()
        let text = try String(contentsOfFile: fixture.config, encoding: .utf8)
        func waitForStream(_ name: String) throws -> Bool {
            try eventually { (try fixture.status()["streams"] as? [String: Any])?[name] != nil }
        }
        try fixture.write(text + "[streams]\nlocation = \"places\"\n", "waypost.toml")
        fixture.signal(SIGHUP)
        #expect(try waitForStream("places"))
        try fixture.write(text + "[streams]\nlocation = 5\n", "waypost.toml")
        fixture.signal(SIGHUP)
        try fixture.write(text, "waypost.toml")
        #expect(try waitForStream("places") || waitForStream("linux_gpsd_location"))
        fixture.signal(SIGHUP)
        #expect(try waitForStream("linux_gpsd_location"))
        #expect(fixture.isRunning)
    }

    @Test func secondDaemon_isRefusedTheSameStateDirectory() throws {
        let fixture = try Fixture()
        try fixture.start()
        let second = try fixture.run("run")
        #expect(second.status == 2)
        #expect(second.error.contains("another waypost runs with this state directory"))
    }

    /// A second gateway would take over the first one's sockets, which would then be unreachable.
    @Test func secondDaemon_isRefusedTheSameRuntimeDirectory() throws {
        let fixture = try Fixture()
        try fixture.start()
        let text = try String(contentsOfFile: fixture.config, encoding: .utf8)
        try fixture.write(text.replacing("/state\"", with: "/other\""), "waypost.toml")
        let said = Pipe()
        let second = try fixture.begin("run", error: said)
        try waitUntil("its end") { !second.isRunning }
        #expect(second.terminationStatus == 2)
        let why = String(decoding: said.fileHandleForReading.availableData, as: UTF8.self)
        #expect(why.contains("another waypost runs with this runtime directory"))
        try fixture.write(text, "waypost.toml")
        #expect(try !fixture.run("status").error.contains("does not answer"))
    }

    @Test func oneDirectoryForBoth_isEnoughForADaemon() throws {
        let fixture = try Fixture()
        let text = try String(contentsOfFile: fixture.config, encoding: .utf8)
        try fixture.write(text.replacing("/state\"", with: "/run\""), "waypost.toml")
        try fixture.start()
        #expect(try !fixture.run("status").error.contains("does not answer"))
    }

    /// A file cut short on a full disk would pass for an answer.
    @Test(arguments: [["status", "--json"], ["config", "show"], ["survey", "list"]])
    func answerThatCannotBeWritten_isAFailure(words: [String]) throws {
        let fixture = try Fixture()
        try fixture.start()
        let command = ([Tree.program("waypost")] + words + ["--config", fixture.config])
            .joined(separator: " ")
        let full = try Process.run("/bin/sh", ["-c", command + " > /dev/full"])
        #expect(full.status == 2)
        #expect(full.error.contains("standard output: No space left on device"))
        // A caller that needs only the exit status closes it.
        let closed = try Process.run("/bin/sh", ["-c", command + " >&-"])
        #expect(!closed.error.contains("standard output"))
    }

    @Test(.enabled(if: geteuid() == 0))
    func databaseThatAUserMayNotRead_isNamedWithWhoMay() throws {
        let fixture = try Fixture()
        try fixture.start()
        #expect(try fixture.stop() == 0)
        for path in [fixture.folder, fixture.config] { chmod(path, 0o755) }
        // A user of its group, and of another one: without a gateway, SQLite must write beside the
        // database.
        for (group, why) in [("65534", "may not read it"), ("0", "while waypost is not running")] {
            for words in [["export", "location"], ["survey", "list"]] {
                let refused = try Process.run(
                    "/usr/bin/setpriv",
                    ["--reuid=65534", "--regid=\(group)", "--clear-groups"]
                        + [Tree.program("waypost")] + words + ["--config", fixture.config]
                )
                #expect(refused.status == 2)
                #expect(refused.error.contains(why), "\(refused.error)")
                #expect(refused.error.contains("sudo waypost"))
            }
        }
    }

    @Test func wrongConfiguration_listsEveryErrorAndExits78() throws {
        let fixture = try Fixture("bitrate = \"much\"\nnonsense = 1\n")
        let result = try fixture.run("run")
        #expect(result.status == 78)
        #expect(result.error.contains("audio.bitrate"))
        #expect(result.error.contains("audio.nonsense"))
    }

    /// Reading it fails: the unit retries, unlike after an error that needs a person.
    @Test func configurationThatTheDiskDoesNotGive_isNoWrongOne() throws {
        let arguments = ["run", "--config", "/proc/self/mem"]
        let result = try Process.run(Tree.program("waypost"), arguments)
        #expect(result.status == 2)
        #expect(result.error.contains("cannot be read: Input/output error"))
    }

    @Test func tokenReadableByOthers_isRefusedWithTheCommand() throws {
        let fixture = try Fixture()
        let token = fixture.folder + "/token"
        try fixture.write("secret", "token")
        fixture.environment = [
            "WAYPOST_UPLOAD_ENDPOINT": "http://127.0.0.1:1/api/ingest",
            "WAYPOST_UPLOAD_TOKEN_FILE": token,
        ]
        try fixture.start()
        let errors = try fixture.status()["recent_errors"] as? [[String: Any]] ?? []
        #expect(
            errors.contains { ($0["message"] as? String)?.contains("chmod 600 \(token)") == true }
        )
        #expect(try !fixture.run("status").output.contains("secret"))
    }

    @Test func unwritableStateDirectory_isNamed() throws {
        let fixture = try Fixture()
        try Data().write(to: URL(fileURLWithPath: fixture.folder + "/state"))
        let result = try fixture.run("run")
        #expect(result.status == 2)
        #expect(result.error.contains(fixture.folder + "/state"))
    }

    @Test(arguments: [
        (["decode", "xyz"], 64, "not hex"), (["decode", "0201"], 2, "no beacon"),
        (["decode", "1BFF9904"], 2, "no beacon"), (["nonsense"], 64, "Usage"),
    ])
    func badArguments_getAClearError(arguments: [String], status: Int32, text: String) throws {
        let result = try Process.run(Tree.program("waypost"), arguments)
        #expect(result.status == status)
        #expect(result.error.contains(text))
    }

    @Test(arguments: [
        (
            "1BFF99040512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F",
            #"{"kind":"ruuvi","beacon_id":"CB:B8:33:4C:88:4F","telemetry":{"temperature_c":24.30,"humidity_percent":53.49,"pressure_pa":100044,"acceleration_x_mg":4,"acceleration_y_mg":-4,"acceleration_z_mg":1036,"battery_mv":2977,"tx_power_dbm":4,"movement_counter":66,"sequence":205}}"#
        ),
        ("058000FFFFFFFF800080008000FFFFFFFFFFFFFFFFFFFFFF", #"{"kind":"ruuvi"}"#),
    ])
    func decode_printsRuuvisPublishedVectors(hex: String, json: String) throws {
        let result = try Process.run(Tree.program("waypost"), ["decode", hex])
        #expect(result.status == 0)
        #expect(result.output == json + "\n")
    }

    @Test func decode_readsLines_andSaysWhatIsNone() throws {
        let input =
            "0A16D2FC4002CA0903BF13\n\n1A xx\n0201\n02 01 06 0A:16:D2:FC:40:02:CA:09:03:BF:13"
        let result = try Process.run(Tree.program("waypost"), ["decode", "-"], input: input)
        let reading =
            #"{"kind":"bthome","telemetry":{"temperature_c":25.06,"humidity_percent":50.55}}"#
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(result.status == 2)
        #expect(lines.count == 5)
        #expect([lines.first, lines.last] == [reading, reading])
        #expect(lines.filter { $0.hasPrefix(#"{"error":"not hex"#) }.count == 2)
        #expect(lines.filter { $0 == #"{"error":"no beacon in these 2 bytes"}"# }.count == 1)
    }

    /// The published example of bthome.io/encryption.
    @Test(arguments: [
        ("54:48:E6:8F:80:A5", "231d39c1d7cc1ab1aee224cd096db932", 0, ""),
        ("54:48:E6:8F:80:A5", "231d39c1d7cc1ab1aee224cd096db933", 1, "does not fit its key"),
        ("54:48:E6:8F:80:A6", "231d39c1d7cc1ab1aee224cd096db932", 1, "has no key for it"),
        ("", "231d39c1d7cc1ab1aee224cd096db932", 1, "--address is needed"),
        ("54:48", "231d39c1d7cc1ab1aee224cd096db932", 64, "not a valid address"),
    ])
    func decode_readsEncryptedData_withConfiguredKey(
        address: String,
        key: String,
        status: Int32,
        error: String
    ) throws {
        let fixture = try Fixture("[beacons.bindkeys]\n\"54:48:E6:8F:80:A5\" = \"\(key)\"\n")
        let hex = "1216D2FC41A47266C95F730011223378237214"
        let result =
            try address.isEmpty
            ? fixture.run("decode", hex) : fixture.run("decode", hex, "--address", address)
        #expect(result.status == status)
        #expect(error.isEmpty ? result.error.isEmpty : result.error.contains(error))
        #expect(!(result.error + result.output).contains(key))
        guard status < 64 else { return }
        let content =
            status == 0
            ? #""telemetry":{"temperature_c":25.06,"humidity_percent":50.55}"#
            : #""data":"d2fc41a47266c95f730011223378237214""#
        #expect(result.output.contains(content))
    }

    @Test func wrongBindkey_isReportedOncePerDevice_withoutTheKey() throws {
        let key = "231d39c1d7cc1ab1aee224cd096db933"
        let fixture = try Fixture("[beacons.bindkeys]\n\"54:48:E6:8F:80:A5\" = \"\(key)\"\n")
        let sealed: [UInt8] = [
            0x12, 0x16, 0xD2, 0xFC, 0x41, 0xA4, 0x72, 0x66, 0xC9, 0x5F, 0x73, 0, 0x11, 0x22, 0x33,
            0x78, 0x23, 0x72, 0x14,
        ]
        let report: [UInt8] =
            [0x04, 0x3E, 31, 0x02, 1, 0, 0, 0xA5, 0x80, 0x8F, 0xE6, 0x48, 0x54, 19] + sealed + [
                0xC4
            ]
        let record = [0, 0, 0, 34, 0, 0, 0, 34, 0, 0, 0, 3] + [UInt8](repeating: 0, count: 12)
        let capture = Array("btsnoop".utf8) + [0, 0, 0, 0, 1, 0, 0, 3, 0xEA]
        let path = fixture.folder + "/capture"
        try Data(capture + record + report + record + report).write(
            to: URL(fileURLWithPath: path)
        )
        fixture.environment = [
            "WAYPOST_BEACONS_SOURCE": "btsnoop:\(path)", "WAYPOST_BEACONS_REPLAY_SPEED": "0",
            "WAYPOST_BEACONS_MAX_RATE": "1000",
        ]
        try fixture.start()
        try waitUntil("two records") {
            try fixture.source("beacons")["records"] as? Int == 2
        }
        let status = try fixture.run("status", "--json").output
        let errors = try fixture.status()["recent_errors"] as? [[String: Any]] ?? []
        let reported = errors.filter {
            ($0["message"] as? String ?? "").contains("does not fit its key")
        }
        #expect(reported.map { $0["count"] as? Int } == [1])
        #expect(!(status + (try fixture.run("config", "show").output)).contains(key))
    }
}
