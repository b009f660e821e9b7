import Foundation
import Host
import StatusBoard
@testable import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

/// Records in quarantine: listed, requeued, dropped; the sums hold after each step and after a
/// restart.
@Suite struct QuarantineTests {
    /// Freezes the first records of a stream and quarantines them in batches of `size`.
    private func quarantine(
        _ queue: Queue,
        _ stream: Records.Stream,
        _ sizes: [Int64],
        message: String = "HTTP 422: bad"
    ) throws -> [Batch] {
        try queue.perform { writer in
            var batches: [Batch] = []
            for size in sizes {
                let range = try #require(try writer.pending(stream))
                let batch = try #require(try writer.freeze(range, through: range.first + size - 1))
                try writer.refused(batch, message: message)
                try writer.quarantine(batch, message: message)
                batches.append(batch)
            }
            return batches
        }
    }

    private func figures(_ queue: Queue, _ stream: Records.Stream) throws -> [Int] {
        let all = try queue.flushed().statistics()
        let figures = try #require(all.first { $0.stream == stream })
        return [figures.accepted, figures.pending, figures.quarantined, figures.evicted]
    }

    @Test func list_showsEachBatchWithTimeWordsAndFirstID_inPages() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        for number in 0..<9 { queue.accept(testSighting(number)) }
        clock.advance(by: .seconds(100))
        let batches = try quarantine(queue, .beacons, [4, 2])
        let page = try queue.reader().quarantine(limit: 1)
        #expect(page.map(\.batch.key) == [batches[0].key])
        #expect(page.first?.batch.attempts == 1)
        #expect(page.first?.batch.error == "HTTP 422: bad")
        #expect(page.first?.at == testStart.wall + .seconds(100))
        let id = try queue.perform { try $0.id(.beacons, 1) }
        #expect(page.first?.firstID == id)
        let rest = try queue.reader().quarantine(after: batches[0].id, limit: 9)
        #expect(rest.map(\.batch.key) == [batches[1].key])
        queue.close()
    }

    @Test func requeue_makesAFreshBatchOfTheSameRecords() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        for number in 0..<10 { queue.accept(testSighting(number)) }
        let held = try #require(try quarantine(queue, .beacons, [4]).first)
        #expect(try figures(queue, .beacons) == [10, 6, 4, 0])
        let fresh = try #require(try queue.perform { try $0.requeue(held) })
        #expect(fresh.key != held.key)
        #expect([fresh.first, fresh.last] == [1, 4])
        #expect(fresh.attempts == 0)
        #expect(fresh.error == nil)
        #expect(try queue.nextReady(.beacons) == fresh)
        #expect(try figures(queue, .beacons) == [10, 10, 0, 0])
        try checkSum(queue)
        // It no longer exists: a second request changes nothing.
        #expect(try queue.perform { try $0.requeue(held) } == nil)
        #expect(try !queue.perform { try $0.drop(held) })
        queue.close()
        queue = try folder.queue()
        #expect(try queue.nextReady(.beacons) == fresh)
        try queue.perform { try $0.uploaded(fresh) }
        #expect(try figures(queue, .beacons) == [10, 6, 0, 0])
        try checkSum(queue)
        queue.close()
    }

    @Test func drop_deletesCountsAndReports() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        for number in 0..<10 { queue.accept(testSighting(number)) }
        let batches = try quarantine(queue, .beacons, [4, 3])
        #expect(try queue.perform { try $0.drop(batches[0]) })
        #expect(try figures(queue, .beacons) == [10, 3, 3, 4])
        try checkSum(queue)
        let losses = try queue.flushed().losses()
        #expect(losses.map(\.kind) == [.discarded])
        #expect(losses.map(\.records) == [4])
        var reported: [String] = []
        try queue.reader().events(1...100) { _, kind, source, detail in
            if kind == "evicted" { reported.append("\(source) \(detail)") }
        }
        #expect(reported.count == 1)
        #expect(reported.first?.contains(#""kind":"discarded","records":4,"#) == true)
        #expect(reported.first?.contains("HTTP 422: bad") == true)
        // Those of the second batch, which come after, are untouched; a restart changes no count.
        queue.close()
        queue = try folder.queue()
        #expect(try figures(queue, .beacons) == [10, 3, 3, 4])
        try checkSum(queue)
        queue.accept(testSighting(11))
        #expect(try queue.flushed().pending(.beacons)?.last == 11)
        queue.close()
    }

    @Test func whatGaveWayBeforeItsEventWasWritten_isNoDamage() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        for number in 0..<10 { queue.accept(testSighting(number)) }
        queue.close()
        // From here on ids use another start's random number.
        queue = try folder.queue()
        queue.accept(testSighting(10))
        let batches = try quarantine(queue, .beacons, [10])
        // The disk is full, so the batch is evicted before the end of the sync that quarantined and
        // reports it.
        #expect(try queue.perform { try $0.evictQuarantined() })
        try queue.perform { try $0.recordQuarantined(batches, message: "HTTP 422: bad") }
        #expect(try figures(queue, .beacons) == [11, 1, 0, 10])
        #expect(queue.leavings == 0)
        try checkSum(queue)
        queue.close()
    }

    @Test func dropOfSound_keepsWhatItsNeighboursNeed() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        record(queue, segments: 43)
        let chunks = try queue.perform { try #require(try $0.pending(.audio)).last }
        #expect(chunks == 3)
        let batches = try quarantine(queue, .audio, [1, 1, 1])
        #expect(try queue.perform { try $0.drop(batches[1]) })
        try checkSum(queue)
        let reader = try queue.reader()
        var needed: [Int64] = []
        try reader.chunksThere(1...3) { chunk in
            let first = chunk.record.firstSegment
            needed += (0..<Int64(chunk.record.segments)).map { first + $0 }
        }
        #expect(needed.count == 30)
        for segment in needed { #expect(try reader.segment(segment) != nil, "\(segment)") }
        queue.close()
    }

    @Test func traffic_isCountedByDay_andKeptForAWeek() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        var queue = try folder.queue(clock: clock)
        try queue.perform { try $0.recordClock(testStart, synced: true) }
        for day in 0..<10 {
            if day > 0 { clock.advance(by: .seconds(86_400)) }
            try queue.perform { try $0.record(Traffic(sent: 100, received: 10)) }
            try queue.perform { try $0.record(Traffic(sent: Int64(day), received: 0)) }
        }
        queue.close()
        queue = try folder.queue(clock: clock)
        let days = try queue.flushed().traffic()
        let last = testStart.wall.utcDay + 9
        #expect(days.map(\.day) == [0, 1, 2, 3, 4, 5, 6].map { last - $0 })
        #expect(days.first?.traffic == Traffic(sent: 109, received: 10))
        // The board's own clock does not matter if the time is known.
        for years in [-50, -1, 1] {
            clock.stepWall(to: testStart.wall + .seconds(years * 365 * 86_400))
            try queue.perform { try $0.record(Traffic(sent: 1, received: 0)) }
        }
        #expect(try queue.flushed().traffic().map(\.day) == days.map(\.day))
        #expect(try queue.flushed().traffic().first?.traffic == Traffic(sent: 112, received: 10))
        queue.close()
        // If the time is unknown, only the board's clock is left, and nothing is deleted.
        clock.stepWall(to: WallTime(milliseconds: 0))
        queue = try folder.queue(bootID: "another", clock: clock)
        try queue.perform { try $0.record(Traffic(sent: 1, received: 0)) }
        #expect(try queue.flushed().traffic().map(\.day) == [0])
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM traffic") == 8)
    }
}
