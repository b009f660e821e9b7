// The device's health at the server, and planned stops of its microphone.
import Foundation
import SQLite
import Support
import Testing

@Suite struct HealthSystemTests {
    /// A daemon whose health timer ticks twice per second, for a server.
    @Test func health_reachesTheServer_asTheProtocolSays() throws {
        let temporary = TemporaryFolder()
        let manager = try ServiceManagerSocket(folder: temporary.path, interval: .seconds(1))
        let device = try Device(in: temporary)
        device.environment = manager.environment
        let endpoint = try device.startReceiver()
        try device.write("demo-token", "token", mode: 0o600)
        try device.configure(
            """
            [upload]
            endpoint = "\(endpoint)"
            token_file = "\(device.folder)/token"
            interval = "500ms"
            """
        )
        try device.start()
        var records: [[String: Any]] = []
        try waitUntil("a health record") {
            records = try device.arrived("waypost_health").compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
            return !records.isEmpty
        }
        let record = try #require(records.first)
        for name in ["id", "timestamp", "clock", "version"] {
            #expect(record[name] is String, "\(name)")
        }
        let states = ["healthy", "degraded", "critical"]
        #expect(states.contains(record["state"] as? String ?? ""))
        let reasons = try #require(record["reasons"] as? [String])
        #expect(reasons.isEmpty == (record["state"] as? String == "healthy"))
        for name in ["uptime_s", "free_bytes", "database_bytes", "memory_available_bytes"] {
            #expect(record[name] is Int, "\(name)")
        }
        #expect(record["load_1m"] is Double)
        for name in ["pending", "lost_24h"] { #expect(record[name] is [String: Int], "\(name)") }
        let resting = ["audio": "disabled", "beacons": "disabled", "location": "disabled"]
        #expect(record["sources"] as? [String: String] == resting)
        #expect((record["next_sync_at"] as? String)?.hasSuffix("Z") == true)
        // The next one is due in a minute: it costs one request per interval.
        #expect(records.count == 1)
        // It is a stream like any other for a person on the device.
        let exported = try device.run("export", "waypost_health")
        #expect(exported.output.contains("\"state\":"), "\(exported.error)")
        #expect(try device.stop() == 0)
    }

    // MARK: Planned stops

    /// A device whose microphone is a file.
    private final class Recorder: Device {
        init() throws {
            try super.init()
            try write(fileMicrophone(folder + "/mic.raw"), "asound.conf")
            let samples = (0..<64_000).map { $0 % 50 < 25 ? UInt8(16) : 240 }
            try Data(samples).write(to: URL(fileURLWithPath: folder + "/mic.raw"))
            environment = ["ALSA_CONFIG_PATH": folder + "/asound.conf"]
            try record(chunk: 4)
        }

        func record(chunk seconds: Int) throws {
            try configure(
                """
                [audio]
                device = "mic"
                codec = "wav"
                silence = "ok"
                chunk = "\(seconds)s"
                [storage]
                commit_interval = "100ms"
                """
            )
        }

        /// The details of the gaps in the database, in order.
        func gaps() throws -> [[String: Any]] {
            let path = folder + "/state/queue.sqlite"
            guard let database = try? Connection(path: path, access: .readOnly) else { return [] }
            let rows = try database.prepare(
                "SELECT detail FROM events WHERE kind='gap' ORDER BY id"
            )
            var gaps: [[String: Any]] = []
            while try rows.step() {
                let detail = try JSONSerialization.jsonObject(with: Data(rows.text(0).utf8))
                gaps.append(detail as? [String: Any] ?? [:])
            }
            return gaps
        }

        /// The gaps of planned stops; a file that is read faster than time passes has others, too.
        func pauses() throws -> Int { try gaps().count { $0["state"] as? String == "off" } }

        /// The gaps of starts after an end that nobody asked for.
        func crashes() throws -> [[String: Any]] {
            try gaps().filter { $0["reason"] as? String == "the source was restarted" }
        }

        func waitForPauses(_ count: Int) throws {
            try waitUntil("\(count) planned stops") { try pauses() >= count }
        }
    }

    @Test func plannedStops_areOff_andAKillIsALoss() throws {
        let device = try Recorder()
        try device.start()
        try waitUntil("sound") { try device.source("audio")["state"] as? String == "loaded" }
        try waitUntil("a record") { try device.source("audio")["records"] as? Int ?? 0 > 0 }
        let restart = try device.run("restart", "audio")
        #expect(restart.status == 0, "\(restart.error)")
        try device.waitForPauses(1)
        // As systemctl restart, and an upgrade of the package.
        #expect(try device.stop() == 0)
        try device.start()
        try device.waitForPauses(2)
        // As systemctl reload, of this source.
        try device.record(chunk: 6)
        device.signal(SIGHUP)
        try device.waitForPauses(3)
        #expect(try device.crashes().isEmpty)

        device.killDaemon()
        try device.start()
        try waitUntil("the gap of the kill") { try !device.crashes().isEmpty }
        #expect(try device.pauses() == 3)
        #expect(try device.crashes().first?["lost_frames"] is Int)
        let losses = try device.status()["losses"] as? [[String: Any]] ?? []
        #expect(losses.contains { $0["kind"] as? String == "gap" })
        #expect(try device.stop() == 0)
    }
}
