// Wrong settings to a thousand devices: each is back on its last good version in time.
import Configuration
import Support
import Testing

@Suite struct SettingsFleetTests {
    /// The devices' own files, and the most hours until they are back: three intervals, but an hour
    /// at least, and in which they upload and record.
    private static let devices: [(file: String, hours: Int64)] = [
        ("[upload]\ninterval = \"5m\"\n", 1),
        ("[upload]\ninterval = \"1m\"\n[location]\nenabled = false\n", 1),
        ("[upload]\ninterval = \"1h\"\nquiet = \"22:00-06:00\"\n", 3 + 8),
        (
            "[upload]\ninterval = \"15m\"\ndaily_budget = \"20MB\"\n[beacons]\nenabled = false\n",
            1
        ),
        ("[upload]\ninterval = \"30s\"\n[audio]\nduty = \"1m/10m\"\n", 10),
    ]

    private static let good = "log.level = \"debug\"\n"

    /// Two hundred texts that no device may keep.
    private static var wrong: [String] {
        nonsense + forbidden + invalid + deaf + silent
    }

    private static var nonsense: [String] {
        let valid = Array("[upload]\ninterval = \"10m\"\n[beacons]\ndeny = [\"a*\"]\n")
        return (0..<50).map { number in
            var text = valid
            // Quotes, brackets and signs in the places where they end a key, a table or a text.
            let places = [1, 8, 18, 20, 25, 27, 36, 43, 46]
            text.insert(Array("\"[=\n{")[number % 5], at: places[number % 9])
            return String(text) + (number % 2 == 0 ? "= \(number)" : "[\(number)")
        }
    }

    private static var forbidden: [String] {
        let keys = [
            "device_id = \"x\"", "state_directory = \"/tmp\"", "runtime_directory = \"/tmp\"",
            "[upload]\nendpoint = \"https://evil.example/\"", "[upload]\ntoken_file = \"/x\"",
            "[upload]\ntoken = \"x\"", "[upload]\nrequired = false", "[audio]\ndevice = \"hw:1\"",
            "[audio]\nsource = \"file:/etc/shadow\"", "[beacons]\nsource = \"hci1\"",
            "[beacons.bindkeys]\n\"A4:C1:38:00:00:01\" = \"x\"", "[remote]\nallow = []",
            "[remote]\nkey = \"x\"", "[mqtt]\nurl = \"mqtt://evil.example\"",
            "[storage]\nmax_size = \"1MB\"", "[import]\nstick = true",
            "[metrics]\ntextfile = \"/etc/cron.d/x\"", "[led]\nname = \"led0\"",
            "[stream.new]\nmax_rate = 1.0", "[streams]\naudio = \"other\"",
        ]
        return keys + keys.map { "[log]\nlevel = \"debug\"\n" + $0 + " # again" }
    }

    private static var invalid: [String] {
        let values = [
            "-1", "0", "\"\"", "\"soon\"", "true", "[]", "{}", "1e400", "nan", "\"1000 years\"",
        ]
        return ["upload.interval", "upload.quiet", "audio.duty", "beacons.scan_window"]
            .flatMap { key in values.map { "\(key) = \($0)\n" } }
    }

    /// Nothing would be uploaded for longer than before.
    private static var deaf: [String] {
        let intervals = ["1d", "2d", "20h", "30h", "7d"].map { "upload.interval = \"\($0)\"\n" }
        let quiet = ["00:00-23:59", "08:00-07:30", "12:00-11:10", "09:00-08:01"]
            .map { "upload.quiet = \"\($0)\"\n" }
        let budgets = ["1B", "2B", "10B", "1kB", "9kB", "99kB"]
            .map { "upload.daily_budget = \"\($0)\"\n" }
        return intervals + quiet + budgets + intervals.map { $0 + "log.level = \"error\"\n" }
    }

    /// Nothing would be recorded.
    private static var silent: [String] {
        let never = ["2020-01-01..2020-02-01", "02-30..02-30"]
        let schedules = never.flatMap { span in
            ["beacons", "audio"].map { "\($0).schedule = [\"\(span)\"]\n" }
        }
        let filters = [
            "audio.min_level_db = 0\n", "audio.min_level_db = -1\n", "audio.duty = \"0s/1d\"\n",
        ]
        let all = schedules + filters
        return (0..<50).map { all[$0 % all.count] + "# \($0)\n" }
    }

    @Test func wrongSettings_areTakenBackInTime() throws {
        #expect(Self.wrong.count >= 200)
        var counts: [String: Int] = [:]
        for (file, hours) in Self.devices {
            let device = try FleetDevice(TemporaryFolder(), file)
            defer { device.close() }
            let good = device.answer(to: Self.good, version: 10)
            #expect(good.state == "kept", "\(file): \(good)")
            let limit = Duration.seconds(hours * 3600 + 600)
            for (number, text) in Self.wrong.enumerated() {
                // Some of them are older versions, too.
                let version = Int64(number % 20 == 0 ? 9 : 100 + number)
                let answer = device.answer(to: text, version: version)
                counts[answer.state, default: 0] += 1
                #expect(["refused", "rolled_back"].contains(answer.state), "\(text): \(answer)")
                #expect(device.applied == 10, "\(text): \(answer)")
                #expect(answer.passed < limit, "\(text): \(answer)")
            }
        }
        // Those that a check cannot find are found by the gate.
        #expect(counts["rolled_back"] ?? 0 >= 100, "\(counts)")
    }

    @Test func outageOfThirtyDays_takesNoSettingsBack() throws {
        for (file, hours) in Self.devices.prefix(3) {
            let device = try FleetDevice(TemporaryFolder(), file)
            defer { device.close() }
            let text = Self.good + "upload.interval = \"10m\"\nbeacons.max_rate = 1\n"
            let (long, limit) = (Duration.days(30), Duration.days(32))
            let good = device.answer(to: text, version: 1, outage: long, limit: limit)
            #expect(good.state == "kept" && good.passed > long, "\(file): \(good)")
            // Uploads became rarer, and none is accepted: at most this one is taken back.
            let wrong = "upload.interval = \"20h\"\n"
            let back = device.answer(to: wrong, version: 2, outage: long, limit: limit)
            #expect(back.state == "rolled_back" && device.applied == 1, "\(file): \(back)")
            #expect(back.passed < long + .seconds(hours * 3600 + 600))
        }
    }
}
