import Foundation
import Host
import Queue
import QueueSupport
import Records
import Support
import Testing

/// `waypost quarantine` with and without a running daemon.
@Suite struct QuarantineSystemTests {
    private let device: Device
    private var folder: String { device.folder }

    init() throws { device = try Device() }

    /// A state directory with three batches of two positions each in quarantine.
    private func prepare() throws {
        try FileManager.default.createDirectory(
            atPath: folder + "/state",
            withIntermediateDirectories: true
        )
        let queue = try Queue(at: folder + "/state/queue.sqlite")
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

    private func check(_ pending: Int, _ quarantined: Int) throws {
        let stream = try device.stream("linux_gpsd_location")
        #expect(stream["pending"] as? Int == pending)
        #expect(stream["quarantined"] as? Int == quarantined)
    }

    private func keys() throws -> [String] {
        let text = try device.run("quarantine", "list", "--json").output
        let list = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        return (list?["batches"] as? [[String: Any]] ?? []).compactMap { $0["key"] as? String }
    }

    @Test func withTheDaemonAndWithout_theCountsFollow() throws {
        try prepare()
        try device.start()
        let list = try device.run("quarantine", "list")
        #expect(list.status == 0)
        #expect(list.output.contains("HTTP 422: bad longitude"))
        #expect(list.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
        var keys = try keys()
        #expect(keys.count == 3)
        try check(0, 6)
        #expect(try device.run("quarantine", "requeue", keys[0]).status == 0)
        try check(2, 4)
        let unknown = try device.run("quarantine", "drop", keys[0])
        #expect(unknown.status == 2)
        #expect(unknown.error.contains("quarantine list"))
        #expect(try device.run("quarantine", "drop", "all").status == 64)

        #expect(try device.stop() == 0)
        keys = try self.keys()
        #expect(keys.count == 2)
        // Without the daemon, batches can be listed, not changed.
        for (change, what) in [("requeue", "all"), ("drop", keys[0])] {
            let refused = try device.run("quarantine", change, what)
            #expect(refused.status == 2)
            #expect(refused.error.contains("systemctl start waypost"))
        }
        #expect(try self.keys() == keys)
    }

    @Test func noDatabase_isSaid_andNoneIsMade() throws {
        for command in ["quarantine", "survey"] {
            let result = try device.run(command, "list")
            #expect(result.status == 0)
            #expect(result.output.hasPrefix("nothing recorded yet"), "\(result.output)")
        }
        // A gateway that has run had one.
        try device.start()
        #expect(try device.stop() == 0)
        try FileManager.default.removeItem(atPath: folder + "/state/queue.sqlite")
        let result = try device.run("quarantine", "list")
        #expect(result.status == 2)
        #expect(result.error.contains("queue.sqlite"))
        #expect(!FileManager.default.fileExists(atPath: folder + "/state/queue.sqlite"))
    }
}
