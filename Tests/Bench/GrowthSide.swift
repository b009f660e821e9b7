// The cost of each step of the queue in a database of a given size.
import Configuration
import Glibc
import Host
import HTTP
import Queue
import Records
import SQLite
import Upload

/// One size: a number of pending rows of a number of beacons.
struct GrowthPoint {
    /// The measured figures and their units.
    static let figures: [(name: String, unit: String)] = [
        ("ingest", "CPU us/row"), ("start", "ms"), ("status", "ms"), ("batch", "CPU us/record"),
        ("retention", "CPU us/row"),
    ]

    /// Rows that are added, sent and deleted in the full database.
    private static let share = 100_000
    /// Bodies of about a thousand records.
    private static let batchBytes = 256 << 10

    let rows: Int
    let beacons: Int
    private let path: String

    init(rows: Int, beacons: Int, database: String) {
        (self.rows, self.beacons, path) = (rows, beacons, database)
    }

    func measure() throws -> Figures {
        var figures = Figures()
        let task = SideTask(database: path, rows: rows, rowsPerCommit: 0)
        let last = min(rows / 2, Self.share)
        let cycle = Self.cycle(beacons)
        let filled = try task.queue()
        try feed(filled, cycle, 0..<(rows - last))
        figures["ingest"] = try cpu(of: last) {
            try feed(filled, cycle, (rows - last)..<rows)
        }
        filled.close()
        try task.check()

        let before = Usage.now()
        let queue = try task.queue()
        figures["start"] = (Usage.now().wall - before.wall) * 1000
        defer { queue.close() }
        settle()
        let asked = Usage.now()
        for _ in 0..<100 { _ = queue.statistics() }
        figures["status"] = (Usage.now().wall - asked.wall) * 10
        let sent = try send(last, queue, &figures)
        figures["retention"] = try cpu(of: sent) { try delete(through: Int64(sent), queue) }
        return figures
    }

    /// Freezes the oldest that wait, makes the bodies, and has them uploaded; how many.
    private func send(_ count: Int, _ queue: Queue, _ figures: inout Figures) throws -> Int {
        let reader = try queue.reader()
        var sent = 0
        let before = Usage.now()
        while sent < count,
            let (batch, draft) = try BacklogSide.nextBatch(
                queue,
                reader,
                .beacons,
                .gzip,
                limit: Self.batchBytes
            )
        {
            let body =
                try draft.body(of: batch, .gzip) ?? BacklogSide.body(batch, reader, .gzip)
            _ = try BacklogSide.read(body) { _ in }
            try queue.perform { try $0.uploaded(batch) }
            sent += batch.records
        }
        figures["batch"] = (Usage.now().cpu - before.cpu) * 1e6 / Double(max(1, sent))
        return sent
    }

    /// Until the check of the database in the background is over.
    private func settle() {
        var before: Double
        repeat {
            before = Usage.now().cpu
            usleep(200_000)
        } while Usage.now().cpu - before >= 0.01
    }

    /// Purges the uploaded rows and returns when they are deleted.
    private func delete(through last: Int64, _ queue: Queue) throws {
        let connection = try Connection(path: path, access: .readOnly)
        queue.purge(retention: .zero)
        let oldest = "SELECT min(id) FROM sightings"
        while let first = try connection.integer(oldest), first <= last { usleep(2000) }
    }

    private func cpu(of rows: Int, _ work: () throws -> Void) rethrows -> Double {
        let before = Usage.now()
        try work()
        return (Usage.now().cpu - before.cpu) * 1e6 / Double(max(1, rows))
    }

    private func feed(_ queue: Queue, _ cycle: [Sighting], _ range: Range<Int>) throws {
        for index in range {
            var sighting = cycle[index % cycle.count]
            sighting.stamp = Workload.start.advanced(by: Workload.interval * index)
            // There is room for thousands when there is any.
            if index % 1000 == 0 { while !queue.hasRoom { usleep(200) } }
            queue.accept(sighting)
        }
        try queue.perform { _ in }
    }

    /// One sighting of each beacon; each says who it is and nothing else.
    private static func cycle(_ beacons: Int) -> [Sighting] {
        (0..<beacons).map { index in
            let identity = BeaconIdentity(
                kind: .iBeacon,
                beaconID: "f7826da6-4fa2-4e98-8024-bc5b71e0893e/\(index >> 16)/\(index & 0xFFFF)",
                address: BluetoothAddress(value: 0xC0FF_EE00_0000 + UInt64(index)),
                addressType: .randomStatic,
                txPower: -59
            )
            let rssi = Int(Workload.rssi(index))
            return Sighting(identity: identity, rssi: rssi, stamp: Workload.start)
        }
    }
}
