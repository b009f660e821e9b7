// A source that is lost and comes back, on real parts: a gpsd that is killed and started again.
import Foundation
import Glibc
import Queue
import SQLite
import Streams
import Support
import Testing

@Suite struct SourceEventsTests {
    /// A gpsd whose receiver is a program that sends NMEA by UDP, and a daemon that follows it.
    private final class Bench {
        private let temporary = TemporaryFolder()
        var folder: String { temporary.path }
        private let daemon = Process()
        private let receiver = Process()
        private var gpsd: Process?
        private let manager: ServiceManagerSocket
        private let ports: (gpsd: UInt16, receiver: UInt16)

        init() throws {
            // The health timer ticks every two seconds.
            manager = try ServiceManagerSocket(folder: temporary.path, interval: .seconds(4))
            ports = (freePort(), freePort(datagrams: true))
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
            gpsd = "127.0.0.1:\(ports.gpsd)"
            [storage]
            commit_interval = "100ms"
            """.write(toFile: folder + "/waypost.toml", atomically: true, encoding: .utf8)
            try startReceiver()
            try startGPSD()
        }

        deinit {
            for process in [daemon, receiver, gpsd] {
                if let process, process.isRunning { kill(process.processIdentifier, SIGKILL) }
            }
        }

        private func startReceiver() throws {
            let root = Tree.root.path
            receiver.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            receiver.arguments = [
                "python3", "-c",
                """
                import itertools, socket, subprocess, sys, time
                route = [sys.executable, sys.argv[1], "--minutes", "1"]
                lines = subprocess.run(route, capture_output=True).stdout.splitlines(keepends=True)
                out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                for line in itertools.cycle(lines):
                    out.sendto(line, ("127.0.0.1", int(sys.argv[2])))
                    time.sleep(0.05)
                """, "\(root)/Tests/Peers/route.py", "\(ports.receiver)",
            ]
            receiver.standardError = FileHandle.nullDevice
            try receiver.run()
        }

        func startGPSD() throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/sbin/gpsd")
            process.arguments = [
                "-N", "-n", "-b", "-S", "\(ports.gpsd)", "udp://127.0.0.1:\(ports.receiver)",
            ]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            gpsd = process
        }

        func killGPSD() {
            guard let gpsd else { return }
            kill(gpsd.processIdentifier, SIGKILL)
            gpsd.waitUntilExit()
        }

        func startDaemon() throws {
            daemon.executableURL = URL(fileURLWithPath: Tree.program("waypost"))
            daemon.arguments = ["run", "--config", folder + "/waypost.toml"]
            daemon.standardError = FileHandle.nullDevice
            daemon.environment = ProcessInfo.processInfo.environment
                .merging(manager.environment) { $1 }
            try daemon.run()
        }

        func stop() -> Int32 {
            daemon.terminate()
            daemon.waitUntilExit()
            return daemon.terminationStatus
        }

        func status() throws -> [String: Any] {
            let text = try Process.run(
                Tree.program("waypost"),
                [
                    "status", "--json", "--config", folder + "/waypost.toml",
                ]
            ).output
            let object = try? JSONSerialization.jsonObject(with: Data(text.utf8))
            return object as? [String: Any] ?? [:]
        }

        var fixes: Int {
            let sources = (try? status())?["sources"] as? [String: [String: Any]]
            return sources?["location"]?["records"] as? Int ?? 0
        }

        /// Kind, source and detail of each event of a source.
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
        let bench = try Bench()
        try bench.startDaemon()
        try waitUntil("fixes") { bench.fixes > 0 }
        #expect(try bench.events().isEmpty)
        bench.killGPSD()
        try waitUntil("the loss") { try bench.events().count >= 1 }
        let errors = try bench.status()["recent_errors"] as? [[String: Any]] ?? []
        #expect(errors.contains { "\($0["message"] ?? "")".contains("gpsd at 127.0.0.1") })
        try bench.startGPSD()
        try waitUntil("the recovery") { try bench.events().count >= 2 }
        #expect(bench.stop() == 0)

        let events = try bench.events()
        #expect(events.map(\.kind) == ["source_lost", "source_recovered"])
        // Beacons and sound are disabled: they are never lost.
        #expect(events.allSatisfy { $0.source == "location" })
        let (lost, recovered) = (events[0].detail, events[1].detail)
        #expect("\(lost["reason"] ?? "")".contains("gpsd at 127.0.0.1"))
        #expect(lost["since"] as? String == recovered["since"] as? String)
        #expect(recovered["away_s"] as? Double ?? 0 > 0)
        #expect(recovered["restarts"] as? Int ?? 0 > 0)
    }
}
