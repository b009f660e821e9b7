// `waypost survey` on the real program: through kill -9, published at the stop and not before.
import Foundation
import Glibc
import Support
import Testing

@Suite struct SurveySystemTests {
    private final class Bench {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        private var daemon: Process?

        init() throws {
            let root = Tree.root.appendingPathComponent("Tests")
            let capture = root.appendingPathComponent("Fixtures/beacons/capture.btsnoop").path
            try """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            required = false
            [beacons]
            source = "btsnoop:\(capture)"
            replay_speed = 0
            max_rate = 1000
            [location]
            enabled = false
            [audio]
            enabled = false
            """.write(toFile: folder + "/waypost.toml", atomically: true, encoding: .utf8)
        }

        deinit {
            killDaemon()
        }

        func start() throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
            process.arguments = ["run", "--config", folder + "/waypost.toml"]
            process.standardError = FileHandle.nullDevice
            try process.run()
            daemon = process
            try waitUntil("the daemon") { try run("status").status < 2 }
        }

        func killDaemon() {
            guard let daemon else { return }
            self.daemon = nil
            kill(daemon.processIdentifier, SIGKILL)
            daemon.waitUntilExit()
        }

        func run(_ arguments: String...) throws -> Outcome {
            try Process.run(
                Tree.program("waypost"),
                arguments + ["--config", folder + "/waypost.toml"]
            )
        }

        func sightings() throws -> Int {
            let text = try run("status", "--json").output
            let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let streams = report?["streams"] as? [String: [String: Any]]
            return streams?["linux_bluez_beacons"]?["pending"] as? Int ?? 0
        }

        func streams() throws -> [String] {
            let text = try run("status", "--json").output
            let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            return (report?["streams"] as? [String: Any] ?? [:]).keys.sorted()
        }
    }

    @Test func survey_losesNothingToAKill_andEndsWithOneRecord() throws {
        let bench = try Bench()
        try bench.start()
        try waitUntil("the first replay") { try bench.sightings() > 0 }
        #expect(try bench.run("survey", "stop").status == 2)
        #expect(try bench.run("survey", "start", "a/b").status == 64)
        let before = try bench.sightings()
        #expect(try !bench.streams().contains("waypost_surveys"))
        // The replay is over: what comes in now is the next daemon's.
        #expect(try bench.run("survey", "start", "hill").status == 0)
        #expect(try bench.run("survey", "start", "hill").error.contains("is going on"))
        bench.killDaemon()
        try bench.start()
        try waitUntil("the second replay") { try bench.sightings() >= before * 2 }
        bench.killDaemon()
        let open = try bench.run("survey", "list", "--json").output
        #expect(open.contains(#""open":{"name":"hill""#))
        #expect(open.contains(#""surveys":[]"#))
        try bench.start()
        try waitUntil("the third replay") { try bench.sightings() >= before * 3 }
        let total = try bench.sightings()
        #expect(try bench.run("survey", "stop").output.contains("\(total - before) sightings"))
        // Shown once there is one, and not before.
        try waitUntil("the survey in status") {
            try bench.streams().contains("waypost_surveys")
        }
        let text = try bench.run("survey", "show", "hill", "--json").output
        let record = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(record?["sightings"] as? Int == total - before)
        let beacons = record?["beacons"] as? [[String: Any]] ?? []
        #expect(beacons.compactMap { $0["count"] as? Int }.reduce(0, +) == total - before)
        let screen = try bench.run("survey", "show", "hill").output
        #expect(screen.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(try bench.run("survey", "show", "dale").status == 2)
    }
}
