// A real source that is lost and comes back: a gpsd that is killed and restarted.
import Foundation
import Glibc
import Queue
import Records
import SQLite
import Support
import Testing

@Suite struct SourceEventsTests {
    /// A gpsd whose GNSS receiver is a program that sends NMEA by UDP, and a daemon that follows
    /// it.
    private final class Fixture: Device {
        private let ports = (gpsd: freePort(), receiver: freePort(datagrams: true))
        private var gpsd: Process?

        init() throws {
            let temporary = TemporaryFolder()
            // The health timer ticks every two seconds.
            let manager = try ServiceManagerSocket(folder: temporary.path, interval: .seconds(4))
            self.manager = manager
            let port = ports.gpsd
            try super.init(
                """
                [location]
                gpsd = "127.0.0.1:\(port)"
                [storage]
                commit_interval = "100ms"
                """,
                in: temporary
            )
            environment = manager.environment
            try startReceiver()
            try startGPSD()
        }

        private let manager: ServiceManagerSocket

        private func startReceiver() throws {
            let script = """
                import itertools, socket, subprocess, sys, time
                route = [sys.executable, sys.argv[1], "--minutes", "1"]
                lines = subprocess.run(route, capture_output=True).stdout.splitlines(keepends=True)
                out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                for line in itertools.cycle(lines):
                    out.sendto(line, ("127.0.0.1", int(sys.argv[2])))
                    time.sleep(0.05)
                """
            children.append(
                try .started(
                    "/usr/bin/env",
                    [
                        "python3", "-c", script, Tree.path("Tests/Peers/route.py"),
                        "\(ports.receiver)",
                    ]
                )
            )
        }

        func startGPSD() throws {
            let process = try Process.started(
                Tree.tool("gpsd"),
                ["-N", "-n", "-b", "-S", "\(ports.gpsd)", "udp://127.0.0.1:\(ports.receiver)"]
            )
            children.append(process)
            gpsd = process
        }

        func killGPSD() { gpsd?.killAndWait() }

        var fixes: Int {
            (try? source("location"))?["records"] as? Int ?? 0
        }

        /// Kind, source and detail of each source event.
        func events() throws -> [(kind: String, source: String, detail: [String: Any])] {
            let path = folder + "/state/queue.sqlite"
            guard let database = try? Connection(path: path, access: .readOnly) else { return [] }
            let rows = try database.prepare(
                "SELECT kind, source, detail FROM events WHERE kind LIKE 'source%' ORDER BY id"
            )
            var events: [(String, String, [String: Any])] = []
            while try rows.step() {
                let detail = try JSONSerialization.jsonObject(with: Data(rows.text(2).utf8))
                events.append((rows.text(0), rows.text(1), detail as? [String: Any] ?? [:]))
            }
            return events
        }
    }

    @Test func gpsdKilledAndStartedAgain_isLostAndRecoveredOnce() throws {
        let fixture = try Fixture()
        try fixture.launch()
        try waitUntil("fixes") { fixture.fixes > 0 }
        #expect(try fixture.events().isEmpty)
        fixture.killGPSD()
        try waitUntil("the loss") { try fixture.events().count >= 1 }
        let errors = try fixture.status()["recent_errors"] as? [[String: Any]] ?? []
        #expect(errors.contains { "\($0["message"] ?? "")".contains("gpsd at 127.0.0.1") })
        try fixture.startGPSD()
        try waitUntil("the recovery") { try fixture.events().count >= 2 }
        #expect(try fixture.stop() == 0)

        let events = try fixture.events()
        #expect(events.map(\.kind) == ["source_lost", "source_recovered"])
        // Beacons and audio are disabled, so they are never lost.
        #expect(events.allSatisfy { $0.source == "location" })
        let (lost, recovered) = (events[0].detail, events[1].detail)
        #expect("\(lost["reason"] ?? "")".contains("gpsd at 127.0.0.1"))
        #expect(lost["since"] as? String == recovered["since"] as? String)
        #expect(recovered["away_s"] as? Double ?? 0 > 0)
        #expect(recovered["restarts"] as? Int ?? 0 > 0)
    }
}
