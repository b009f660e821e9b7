import Host
import QueueSupport
import Records
import SQLite
import Support
import Testing

@testable import Queue

/// The cost of effort on a device on which nothing happens.
@Suite struct EffortCostTests {
    /// Lives 25 hours with one record per minute; returns the commits and the effort records.
    private func quietDay(isListening: Bool) throws -> (commits: Int, records: [String: Int64]) {
        let (folder, clock) = (TemporaryFolder(), ManualClock(testStart))
        let queue = try Queue(at: folder.database) {
            $0.isTurnedByHand = true
            $0.clock = clock
        }
        defer { queue.close() }
        let start = clock.stamp()
        try queue.perform { try $0.recordClock(start, synced: true, by: .kernel) }
        let reader = try Connection(path: folder.database, access: .readOnly)
        var (commits, version) = (0, try reader.integer("PRAGMA data_version"))
        for stream in [Stream.beacons, .location] where isListening {
            queue.record(.listening, of: stream)
        }
        for minute in 0..<1500 {
            queue.accept(testSighting(minute))
            queue.turn()
            clock.advance(by: .seconds(60))
            queue.turn()
            let now = try reader.integer("PRAGMA data_version")
            if now != version { commits += 1 }
            version = now
        }
        let rows = try reader.prepare("SELECT source, count(*) FROM effort GROUP BY source")
        var records: [String: Int64] = [:]
        while try rows.step() { records[rows.text(0)] = rows.required(1) }
        return (commits, records)
    }

    @Test func quietDay_takesFewRecords_andNoCommitMore() throws {
        let (without, with) = (try quietDay(isListening: false), try quietDay(isListening: true))
        #expect(without.commits >= 1500)
        #expect(with.commits == without.commits)
        #expect(without.records == [:])
        // One, at midnight.
        #expect(with.records == ["beacons": 1, "location": 1])
    }
}
