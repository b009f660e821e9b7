import Foundation
import Host
import Queue
import Streams
import Support
import Testing

/// `waypost quarantine` with the daemon running, and with it dead.
@Suite struct QuarantineSystemTests {
    private let temporary = TemporaryFolder()
    private var folder: String { temporary.path }

    private func run(_ arguments: String...) throws -> Outcome {
        try Process.run(
            Tree.program("waypost"),
            arguments + ["--config", folder + "/waypost.toml"]
        )
    }

    /// A state directory with three batches of two positions each in quarantine.
    private func prepare() throws {
        try FileManager.default.createDirectory(
            atPath: folder + "/state",
            withIntermediateDirectories: true
        )
        let text = """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            required = false
            [beacons]
            enabled = false
            [location]
            enabled = false
            [audio]
            enabled = false

            """
        try text.write(toFile: folder + "/waypost.toml", atomically: true, encoding: .utf8)
        let queue = try Queue(
            settings: QueueSettings(
                path: folder + "/state/queue.sqlite",
                bootID: "boot",
                appVersion: "test"
            )
        )
        let stamp = SystemClock().stamp()
        for _ in 0..<6 {
            queue.accept(Fix(stamp: stamp, mode: .twoDimensional, latitude: 1, longitude: 2))
        }
        while let range = try queue.flushed().pending(.location) {
            try queue.perform { writer in
                guard let batch = try writer.freeze(range, through: range.first + 1) else { return }
                try writer.quarantine(batch, message: "HTTP 422: bad longitude")
            }
        }
        queue.close()
    }

    private func stream() throws -> [String: Any] {
        let text = try run("status", "--json").output
        let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let streams = report?["streams"] as? [String: [String: Any]]
        return streams?["linux_gpsd_location"] ?? [:]
    }

    private func check(_ pending: Int, _ quarantined: Int) throws {
        let stream = try stream()
        #expect(stream["pending"] as? Int == pending)
        #expect(stream["quarantined"] as? Int == quarantined)
    }

    private func keys() throws -> [String] {
        let text = try run("quarantine", "list", "--json").output
        let list = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        return (list?["batches"] as? [[String: Any]] ?? []).compactMap { $0["key"] as? String }
    }

    @Test func withTheDaemonAndWithout_theCountsFollow() throws {
        try prepare()
        let daemon = Process()
        daemon.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
        daemon.arguments = ["run", "--config", folder + "/waypost.toml"]
        daemon.standardError = FileHandle.nullDevice
        try daemon.run()
        defer { if daemon.isRunning { kill(daemon.processIdentifier, SIGKILL) } }
        try waitUntil("the daemon") { try run("status", "--json").status != 2 }

        let list = try run("quarantine", "list")
        #expect(list.status == 0)
        #expect(list.output.contains("HTTP 422: bad longitude"))
        #expect(list.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
        var keys = try keys()
        #expect(keys.count == 3)
        try check(0, 6)
        #expect(try run("quarantine", "requeue", keys[0]).status == 0)
        try check(2, 4)
        let unknown = try run("quarantine", "drop", keys[0])
        #expect(unknown.status == 2)
        #expect(unknown.error.contains("quarantine list"))
        #expect(try run("quarantine", "drop", "all").status == 64)

        daemon.terminate()
        daemon.waitUntilExit()
        keys = try self.keys()
        #expect(keys.count == 2)
        // What is dead can be looked at, not changed.
        for change in [["requeue", "all"], ["drop", keys[0]]] {
            let refused = try Process.run(
                Tree.program("waypost"),
                ["quarantine"] + change + ["--config", folder + "/waypost.toml"]
            )
            #expect(refused.status == 2)
            #expect(refused.error.contains("systemctl start waypost"))
        }
        #expect(try self.keys() == keys)
    }

    @Test func noDatabase_isSaid_andNoneIsMade() throws {
        try prepare()
        try FileManager.default.removeItem(atPath: folder + "/state/queue.sqlite")
        let result = try run("quarantine", "list")
        #expect(result.status == 2)
        #expect(result.error.contains("queue.sqlite"))
        #expect(!FileManager.default.fileExists(atPath: folder + "/state/queue.sqlite"))
    }
}
