import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
import Records

/// Setting and clearing the resend mark of uploaded batches.
@Suite struct ResendMarkTests {
    /// Uploads ten sightings per hour; returns when the first batch was sent.
    private func upload(_ queue: Queue, _ clock: ManualClock, batches: Int) throws -> WallTime {
        let start = clock.wall()
        for number in 0..<batches * 10 { queue.accept(testSighting(number)) }
        for _ in 0..<batches {
            try queue.perform { writer in
                let range = try #require(try writer.pending(.beacons))
                let batch = try writer.freeze(range, through: range.first + 9)
                try writer.uploaded(try #require(batch))
            }
            clock.advance(by: .seconds(3600))
        }
        return start
    }

    private func mark(_ queue: Queue, _ range: ResendRange) throws -> Int {
        try queue.perform { try $0.resend(range) }.records
    }

    @Test func range_isThatOfTheUpload_byTheRightTime() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        defer { queue.close() }
        // Their upload time is unknown: better sent than missed.
        let start = try upload(queue, clock, batches: 3)
        let late = ResendRange(.beacons, since: start + .seconds(86_400))
        #expect(try mark(queue, late) == 30)

        let now = clock.stamp()
        try queue.perform { try $0.recordClock(now, synced: true) }
        #expect(try mark(queue, late) == 0)
        #expect(try mark(queue, ResendRange(.beacons, since: start + .seconds(3600))) == 20)
        let second = ResendRange(nil, since: start + .seconds(3600), until: start + .seconds(7200))
        #expect(try mark(queue, second) == 10)
        #expect(try mark(queue, ResendRange(.location, since: start)) == 0)
    }

    @Test func mark_outlivesARestart_andTheRetention() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        var queue = try folder.queue(clock: clock)
        let start = try upload(queue, clock, batches: 3)
        let now = clock.stamp()
        try queue.perform { try $0.recordClock(now, synced: true) }
        let last = ResendRange(nil, since: start + .seconds(7200))
        #expect(try mark(queue, last) == 10)
        queue.close()

        queue = try folder.queue(clock: clock)
        defer { queue.close() }
        clock.advance(by: .seconds(86_400))
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 20)
        let batch = try #require(try queue.nextResend())
        #expect(batch.first == 21)
        #expect(batch.last == 30)
        try checkSum(queue)
        try queue.perform { try $0.resent(batch) }
        #expect(try queue.nextResend() == nil)
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 10)
    }

    /// Only the newest deleted upload is dated, so that the number is an upper bound.
    @Test func deletedRecords_areCounted_ifTheyMayBeOfTheRange() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        defer { queue.close() }
        let start = try upload(queue, clock, batches: 3)
        let now = clock.stamp()
        try queue.perform { try $0.recordClock(now, synced: true) }
        func gone(since: WallTime) throws -> Int {
            try queue.perform { try $0.resend(ResendRange(.beacons, since: since)) }.gone
        }
        #expect(try gone(since: start) == 0)
        let marked = try #require(try queue.nextResend())
        try queue.perform { try $0.resent(marked) }
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(10_000)) } == 10)
        #expect(try gone(since: start) == 10)
        #expect(try gone(since: start + .seconds(3600)) == 0)
        while let batch = try queue.nextResend() { try queue.perform { try $0.resent(batch) } }
        #expect(try queue.perform { try $0.purge(.beacons, retention: .seconds(60)) } == 20)
        #expect(try gone(since: start + .seconds(3600)) == 30)
        #expect(try gone(since: start + .seconds(90_000)) == 0)
        #expect(try queue.perform { try $0.resend(ResendRange(.audio, since: start)) }.gone == 0)
    }

    /// The rest of a batch gets a new key: a server that has the whole batch must not confuse them.
    @Test func batchThatLostItsFirstRecords_hasAnotherKey() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        defer { queue.close() }
        _ = try upload(queue, clock, batches: 1)
        _ = try mark(queue, ResendRange(nil, since: WallTime(milliseconds: 0)))
        let whole = try #require(try queue.nextResend())
        try queue.perform { writer in
            writer.evictionBytes = 1
            _ = try writer.evictUploaded()
        }
        let rest = try #require(try queue.nextResend())
        #expect(rest.first == 2)
        #expect(rest.key != whole.key)
    }
}
