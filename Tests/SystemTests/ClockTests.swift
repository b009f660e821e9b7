// The real program with a real gpsd: a board whose only time source is its GNSS receiver.
import Foundation
import Glibc
import Host
import Support
import Testing

import Daemon

@Suite struct ClockSystemTests {
    /// A daemon that listens to a GNSS receiver simulated by gpsfake.
    private final class Fixture: Device {
        private let port = freePort()

        init(start: String) throws {
            let port = port
            try super.init(
                """
                [location]
                gpsd = "127.0.0.1:\(port)"
                interval = "1s"
                """
            )
            let walk = ["--start", start, "--minutes", "3"]
            let route = try Process.run(
                "/usr/bin/python3",
                [Tree.path("Tests/Peers/route.py")] + walk
            )
            try write(route.output, "route.nmea")
        }

        /// gpsfake starts its own gpsd, and Process makes them one group: the whole group is
        /// killed.
        deinit {
            for gpsfake in children where gpsfake.isRunning {
                kill(-gpsfake.processIdentifier, SIGKILL)
            }
        }

        /// Called after the daemon, whose clock is unsynced until the receiver is there.
        func startReceiver() throws {
            // Four sentences per second, the pace of the recording.
            let arguments = ["-q", "-P", "\(port)", "-c", "0.25", folder + "/route.nmea"]
            children.append(try .started(Tree.tool("gpsfake"), arguments))
        }

        func clockState() throws -> String {
            let report = try status()
            // There is nothing to read before the daemon's first output.
            guard (report["daemon"] as? [String: Any])?["running"] as? Bool == true else {
                return "not running"
            }
            return (report["clock"] as? [String: Any])?["state"] as? String ?? "?"
        }

        func wait(for state: String) throws {
            try waitUntil(state) { try clockState() == state }
        }

        /// The rows of a query, with columns separated by a blank.
        func query(_ sql: String) throws -> [String] {
            let script = """
                import sqlite3, sys
                for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row)
                """
            let arguments = ["python3", "-c", script, folder + "/state/queue.sqlite", sql]
            let text = try Process.run("/usr/bin/env", arguments).output
            return text.split(separator: "\n").map(String.init)
        }
    }

    /// Only if the kernel does not vouch for the clock: it would be believed first.
    @Test(.enabled(if: !ClockEvidence.systemVouches(stepped: nil)))
    func receiverBehindGpsd_syncsTheBoot_andSaysBy() throws {
        let fixture = try Fixture(start: "2027-12-24T18:00:00")
        try fixture.launch()
        try fixture.wait(for: "unsynced")
        try fixture.startReceiver()
        try fixture.wait(for: "synced")
        let anchors = try fixture.query("SELECT source, wall FROM clock_map WHERE synced=1")
        #expect(anchors.count == 1)
        let anchor = try #require(anchors.first?.split(separator: " "))
        #expect(anchor.first == "gpsd")
        // 2027-12-24T18:00:00Z is 1829671200 s; the walk takes three minutes.
        let seconds = try #require(anchor.last.flatMap { Int64($0) }) / 1000
        #expect((1_829_671_200...1_829_671_380).contains(seconds))
        var events: [String] = []
        try waitUntil("an event") {
            events = try fixture.query("SELECT detail FROM events WHERE kind='clock_synced'")
            return !events.isEmpty
        }
        #expect(events.count == 1)
        #expect(events.first?.hasPrefix(#"{"by":"gpsd","offset_s":"#) == true)
    }
}
