import Foundation
import Host
@testable import Queue
import Records
import SQLite
import Support
import Testing

extension TemporaryFolder {
    var database: String { path + "/queue.sqlite" }

    /// The number of files that this process has open.
    var openFiles: Int {
        let links = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return links.count { link in
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/" + link
            )
            return target?.contains(path) ?? false
        }
    }

    func queue(
        commitInterval: Duration = .seconds(1),
        bootID: String = "boot",
        clock: any HostClock = SystemClock(),
        limits: StorageLimits = StorageLimits(),
        freeSpace: (@Sendable (String) -> Int64)? = nil
    ) throws -> Queue {
        var settings = QueueSettings(
            path: database,
            bootID: bootID,
            commitInterval: commitInterval,
            clock: clock,
            appVersion: "test"
        )
        settings.limits = limits
        if let freeSpace { settings.freeSpace = freeSpace }
        return try Queue(settings: settings)
    }
}

/// The point in time that tests start from.
let testStart = Stamp(
    boot: BootInstant(nanoseconds: 1_000_000_000_000),
    wall: WallTime(milliseconds: 1_795_235_407_000)
)

/// Returns the sighting of one of ten beacons.
func testSighting(_ number: Int, rssi: Int = -60) -> Sighting {
    Sighting(
        identity: BeaconIdentity(
            kind: .iBeacon,
            beaconID: "f7826da6/1/\(number % 10)",
            address: BluetoothAddress(value: UInt64(number % 10)),
            addressType: .randomStatic,
            txPower: -59
        ),
        rssi: rssi,
        stamp: testStart.advanced(by: .milliseconds(Int64(number)))
    )
}

/// Records a run of audio with `count` segments, each `bytes` long.
func record(_ queue: Queue, segments count: Int, bytes: Int = 6000, from number: Int = 0) {
    let run = AudioRun(id: queue.newRunID(), codec: .opus, rate: 16_000, device: "mic")
    queue.begin(run)
    for index in 0..<count {
        queue.accept(
            Segment(
                run: run.id,
                frames: 32_000,
                start: testStart.advanced(by: .seconds(2 * (number + index))),
                meanSquare: 0.01,
                data: [UInt8](repeating: UInt8(truncatingIfNeeded: number + index), count: bytes)
            )
        )
    }
    queue.end(run: run.id)
}

/// Checks the invariants of each stream: every accepted record is accounted for, and the rows
/// exist.
func checkSum(_ queue: Queue) throws {
    for count in try queue.perform({ try $0.counts() }) {
        let stream = count.figures
        #expect(stream.accepted == count.next - 1, "\(stream)")
        #expect(
            stream.accepted
                == stream.uploaded + stream.pending + stream.quarantined + stream.evicted
        )
        #expect(count.rows == stream.pending + stream.quarantined, "\(stream)")
        #expect(stream.pendingBytes == count.pendingBytes, "\(stream)")
    }
}

/// A stream's counters and the tables' contents at the same time: maintenance runs beside a test.
private struct StreamCount {
    let figures: StreamStatistics
    /// The sequence of the next record.
    let next: Int
    /// Rows that are not uploaded: pending and quarantined.
    let rows: Int
    let pendingBytes: Int
}

extension Writer {
    fileprivate func counts() throws -> [StreamCount] {
        try streams.kinds.map { kind in
            let (id, table) = (Int64(kind.stream.number), kind.table)
            func integer(_ statement: String) throws -> Int {
                Int(try connection.integer(statement, id) ?? 0)
            }
            return StreamCount(
                figures: liveStatistics(kind),
                next: try integer("SELECT next FROM sequences WHERE database=0 AND stream=?"),
                rows: try integer(
                    """
                    SELECT count(*) FROM \(table) r WHERE NOT EXISTS (SELECT 1 FROM batches
                    WHERE stream=? AND state=1 AND r.id BETWEEN first AND last)
                    """
                ),
                pendingBytes: try integer(
                    """
                    SELECT sum(\(kind.storedBytes)) FROM \(table) r WHERE NOT EXISTS (SELECT 1 FROM batches
                    WHERE stream=? AND state>0 AND r.id BETWEEN first AND last)
                    """
                )
            )
        }
    }
}

/// Has the database quarantined, and waits until all salvages are over.
func damage(_ queue: Queue) throws {
    let before = queue.generation
    queue.reportDamage("for the test", generation: before)
    try waitUntil("a new database") { queue.generation > before }
    try salvaged(queue)
}

func salvaged(_ queue: Queue) throws {
    try waitUntil("the salvage is over") {
        let known = try queue.perform { try $0.olderDatabases() }
        return known.count == queue.setAside.count && known.allSatisfy { $0.state != .adopted }
    }
}
