// The real program with a real gpsd: a board that only its receiver can tell the time.
import Foundation
import Glibc
import Support
import Testing

@testable import Gateway

@Suite struct ClockSystemTests {
    /// A daemon that listens to a receiver played by gpsfake.
    private final class Bench {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        private let daemon = Process()
        private let gpsfake = Process()

        init(start: String) throws {
            let root = Tree.root
            let port = freePort()
            _ = try run(
                "/bin/sh",
                "-c",
                """
                python3 '\(root.path)/Tests/Peers/route.py' --start \(start) --minutes 3 \
                > '\(folder)/route.nmea'
                """
            )
            gpsfake.executableURL = URL(fileURLWithPath: "/usr/bin/gpsfake")
            // Four sentences a second of the walk: its own pace.
            gpsfake.arguments = ["-q", "-P", "\(port)", "-c", "0.25", folder + "/route.nmea"]
            gpsfake.standardOutput = FileHandle.nullDevice
            gpsfake.standardError = FileHandle.nullDevice
            try """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            [upload]
            required = false
            [beacons]
            enabled = false
            [audio]
            enabled = false
            [location]
            gpsd = "127.0.0.1:\(port)"
            interval = "1s"
            """.write(toFile: folder + "/waypost.toml", atomically: true, encoding: .utf8)
            daemon.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
            daemon.arguments = ["run", "--config", folder + "/waypost.toml"]
            daemon.standardError = FileHandle.nullDevice
        }

        deinit {
            if daemon.isRunning { kill(daemon.processIdentifier, SIGKILL) }
            // gpsfake has a gpsd of its own, and Process makes a group of the two: all of it goes.
            if gpsfake.isRunning { kill(-gpsfake.processIdentifier, SIGKILL) }
        }

        /// The daemon first: its clock is unsynced until the receiver is there.
        func startDaemon() throws { try daemon.run() }

        func startReceiver() throws { try gpsfake.run() }

        func clockState() throws -> String {
            let text = try run(
                Tree.program("waypost"),
                "status",
                "--json",
                "--config",
                folder + "/waypost.toml"
            )
            // Before the daemon's first words there is nothing to read.
            guard
                let report = try? JSONSerialization.jsonObject(with: Data(text.utf8))
                    as? [String: Any],
                (report["daemon"] as? [String: Any])?["running"] as? Bool == true
            else {
                return "not running"
            }
            return (report["clock"] as? [String: Any])?["state"] as? String ?? "?"
        }

        func wait(for state: String) throws {
            try waitUntil(state) { try clockState() == state }
        }

        /// The rows of a query, columns by a blank.
        func query(_ sql: String) throws -> [String] {
            let script = """
                import sqlite3, sys
                for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row)
                """
            let text = try run(
                "/usr/bin/env",
                "python3",
                "-c",
                script,
                folder + "/state/queue.sqlite",
                sql
            )
            return text.split(separator: "\n").map(String.init)
        }

        private func run(_ program: String, _ arguments: String...) throws -> String {
            try Process.run(program, arguments).output
        }
    }

    /// Only where the kernel does not vouch for the clock itself: it would be believed first.
    @Test(.enabled(if: !ClockEvidence.systemVouches(stepped: nil)))
    func receiverBehindGpsd_syncsTheBoot_andSaysBy() throws {
        let bench = try Bench(start: "2027-12-24T18:00:00")
        try bench.startDaemon()
        try bench.wait(for: "unsynced")
        try bench.startReceiver()
        try bench.wait(for: "synced")
        let anchors = try bench.query("SELECT source, wall FROM clock_map WHERE synced=1")
        #expect(anchors.count == 1)
        let anchor = try #require(anchors.first?.split(separator: " "))
        #expect(anchor.first == "gpsd")
        // 2027-12-24T18:00:00Z is 1829671200 s; the walk takes three minutes.
        let seconds = try #require(anchor.last.flatMap { Int64($0) }) / 1000
        #expect((1_829_671_200...1_829_671_380).contains(seconds))
        var events: [String] = []
        try waitUntil("an event") {
            events = try bench.query("SELECT detail FROM events WHERE kind='clock_synced'")
            return !events.isEmpty
        }
        #expect(events.count == 1)
        #expect(events.first?.hasPrefix(#"{"by":"gpsd","offset_s":"#) == true)
    }
}
