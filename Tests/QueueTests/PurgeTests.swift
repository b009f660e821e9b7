// Removing what is uploaded, in the order of the retention.
import Host
import StatusBoard
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

/// Uploaded records go when their retention is over; what waits stays.
@Suite struct PurgeTests {
    @Test func purge_goesOnBehindWhatIsInQuarantine() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        for number in 0..<30 { queue.accept(testSighting(number)) }
        let bad = try queue.freeze(.beacons, 10)
        try queue.perform { try $0.quarantine(bad, message: "bad") }
        let good = try queue.freeze(.beacons, 10)
        try queue.perform { try $0.uploaded(good) }
        clock.advance(by: .seconds(61))
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 10)
        try checkSum(queue)
        let reader = try queue.reader()
        var kept: [Int64] = []
        try reader.sightingsThere(1...30) { kept.append($0.sequence) }
        #expect(kept == Array(1...10) + Array(21...30))
        queue.close()
        let reopened = try folder.queue(clock: clock)
        #expect(try reopened.flushed().pending(.beacons)?.first == 21)
        try checkSum(reopened)
        reopened.close()
    }

    @Test func purgedSound_leavesTheSegmentsThatItsNeighbourNeeds() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        record(queue, segments: 43)
        let first = try queue.freeze(.audio, 1)
        try queue.perform { try $0.uploaded(first) }
        clock.advance(by: .seconds(61))
        #expect(try queue.perform { try $0.purge(.audio, retention: .seconds(60)) } == 1)
        let reader = try queue.reader()
        var chunks: [Chunk] = []
        try reader.chunksThere(2...3) { chunks.append($0.record) }
        #expect(chunks.count == 2)
        for chunk in chunks {
            // All its own segments, and the previous one for the decoder's pre-roll.
            for id in (chunk.firstSegment - 1)..<(chunk.firstSegment + Int64(chunk.segments)) {
                #expect(try reader.segment(id) != nil)
            }
        }
        #expect(try reader.segment(1) == nil)
        let rest = try queue.freeze(.audio, 2)
        try queue.perform { try $0.uploaded(rest) }
        clock.advance(by: .seconds(61))
        #expect(try queue.perform { try $0.purge(.audio, retention: .seconds(60)) } == 2)
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM segments") == 0)
        queue.close()
    }

    @Test func newestFirst_keepsBacklog_throughPurgeAndRestart() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        var queue = try folder.queue(clock: clock)
        for number in 0..<100 { queue.accept(testSighting(number)) }
        let newest = try queue.perform { writer in
            var range = try #require(try writer.pending(.beacons, newest: true))
            range.first = 91
            return try #require(try writer.freeze(range, through: 100))
        }
        try queue.perform { try $0.uploaded(newest) }
        for number in 100..<120 { queue.accept(testSighting(number)) }
        #expect(try queue.flushed().pending(.beacons)?.last == 90)
        #expect(try queue.perform { try $0.pending(.beacons, newest: true)?.first } == 101)
        try checkSum(queue)

        // After a purge its numbers must not look pending again.
        clock.advance(by: .seconds(61))
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 10)
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 0)
        try checkSum(queue)
        queue.close()
        queue = try folder.queue(clock: clock)
        #expect(try queue.figures(.beacons).pending == 110)
        #expect(try queue.flushed().pending(.beacons)?.last == 90)
        try checkSum(queue)

        // The backlog is uploaded and purged: nothing of it is left, including the mark.
        for _ in 0..<2 {
            try queue.perform { writer in
                let range = try #require(try writer.pending(.beacons))
                try writer.uploaded(try #require(try writer.freeze(range, through: range.last)))
            }
        }
        clock.advance(by: .seconds(61))
        while try queue.perform({ try $0.purge(.beacons, retention: .seconds(60)) }) > 0 {}
        try checkSum(queue)
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM batches") == 0)
        #expect(try database.integer("SELECT count(*) FROM sightings") == 0)
        queue = try folder.queue(clock: clock)
        queue.accept(testSighting(1))
        #expect(try queue.flushed().pending(.beacons)?.first == 121)
        queue.close()
    }
}
