import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
import Records

/// Eviction: which stream loses records when space runs out, and how many.
@Suite struct EvictionTests {
    private static let recordBytes = 15_000

    private func queue(
        _ folder: TemporaryFolder,
        limits: StorageLimits = StorageLimits()
    ) throws -> Queue {
        try Queue(at: folder.database) {
            $0.userStreams = ["camera", "notes"].map { DeclaredStream(name: $0, wire: $0) }
            $0.limits = limits
        }
    }

    /// Puts large records, a few at a time, and waits until they are on the disk.
    private func put(_ queue: Queue, _ stream: String, _ count: Int) throws {
        let text = Array("\"t\":\"\(String(repeating: "x", count: Self.recordBytes - 6))\"".utf8)
        for _ in 0..<count {
            queue.put([UserRecord(stream: stream, stamp: testStart, members: text)]) { _ in }
        }
        try queue.flushed()
    }

    private func stream(_ queue: Queue, _ name: String) throws -> Records.Stream {
        try #require(queue.streams[name: name]?.stream)
    }

    private func figures(_ queue: Queue, _ name: String) throws -> StreamStatistics {
        try queue.figures(stream(queue, name))
    }

    private func freeze(_ queue: Queue, _ name: String, _ count: Int64) throws -> Batch {
        try queue.freeze(stream(queue, name), count)
    }

    /// Returns the most records of 15 kB that a step evicts: the requested space, rounded up to a
    /// record.
    private func maximum(_ queue: Queue) throws -> Int {
        Int(try queue.perform { $0.evictionBytes }) / Self.recordBytes + 1
    }

    @Test func evictionStep_exceedsItsBytesByAtMostOneRecord() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        defer { queue.close() }
        try put(queue, "camera", 120)
        let uploaded = try freeze(queue, "camera", 40)
        try queue.perform { try $0.uploaded(uploaded) }
        let refused = try freeze(queue, "camera", 40)
        try queue.perform { try $0.quarantine(refused, message: "bad") }
        let maximum = try maximum(queue)
        let table = try #require(queue.streams[name: "camera"]?.table)
        func rows() throws -> Int {
            try queue.perform {
                Int(try $0.connection.integer("SELECT count(*) FROM \(table)") ?? 0)
            }
        }

        _ = try queue.perform { try $0.evictUploaded() }
        #expect((1...maximum).contains(120 - (try rows())))
        _ = try queue.perform { try $0.evictQuarantined() }
        #expect((1...maximum).contains(40 - (try figures(queue, "camera").quarantined)))
        _ = try queue.perform { try $0.evictPending() }
        #expect((1...maximum).contains(40 - (try figures(queue, "camera").pending)))
        try checkSum(queue)
    }

    /// At 20 MB the first step evicted all of a stream of 18 MB.
    @Test func fullDatabase_keepsMostOfALargeStream() throws {
        let folder = TemporaryFolder()
        let queue = try queue(
            folder,
            limits: StorageLimits(maxSize: 4_000_000, warnFree: 0, criticalFree: 0)
        )
        defer { queue.close() }
        for _ in 0..<40 { try put(queue, "camera", 10) }
        let camera = try figures(queue, "camera")
        #expect(camera.accepted == 400)
        #expect(camera.evicted > 0)
        #expect(camera.pending * Self.recordBytes > 3_000_000)
        try checkSum(queue)
    }

    /// The deciding sum is that of the rows, before a restart and after it.
    @Test func pendingBytes_equalTheRows_throughAllTransitions() throws {
        let folder = TemporaryFolder()
        let before = try queue(folder)
        try put(before, "camera", 100)
        record(before, segments: 60)
        for number in 0..<100 { before.accept(testSighting(number)) }
        try before.flushed()
        let uploaded = try freeze(before, "camera", 20)
        try before.perform { try $0.uploaded(uploaded) }
        let refused = try freeze(before, "camera", 20)
        try before.perform { try $0.quarantine(refused, message: "bad") }
        try before.perform { writer in
            let held = try #require(try writer.quarantined().first)
            try writer.split(try #require(try writer.requeue(held)))
        }
        let lost = try freeze(before, "camera", 5)
        try before.perform { try $0.lose(lost.first, of: lost) }
        try checkSum(before)
        let bytes = try figures(before, "camera").pendingBytes
        #expect((79 * Self.recordBytes...79 * (Self.recordBytes + 200)).contains(bytes))
        // Events report the losses as the queue closes.
        let figures = try before.liveStatistics().filter { $0.stream != .events }
        before.close()

        let after = try queue(folder)
        defer { after.close() }
        #expect(try after.liveStatistics().filter { $0.stream != .events } == figures)
        try checkSum(after)
    }

    @Test func afterARestart_theLargestStreamGivesWay() throws {
        let folder = TemporaryFolder()
        let before = try queue(folder)
        try put(before, "camera", 100)
        record(before, segments: 60)
        try before.flushed()
        before.close()

        let after = try queue(folder)
        defer { after.close() }
        _ = try after.perform { try $0.evictPending() }
        #expect(try figures(after, "camera").evicted > 0)
        #expect(try figures(after, "audio").evicted == 0)
    }

    /// A drained stream has size zero, whatever was counted wrong before.
    @Test func pendingBytes_areZeroOnceNothingWaits() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        defer { queue.close() }
        try put(queue, "camera", 3)
        let table = try #require(queue.streams[name: "camera"]?.table)
        // Damage removes a row, so its bytes cannot be subtracted any more.
        try queue.perform { try $0.connection.run("DELETE FROM \(table) WHERE id=2") }
        let batch = try freeze(queue, "camera", 3)
        try queue.perform { try $0.uploaded(batch) }
        #expect(try figures(queue, "camera").pendingBytes == 0)
        try put(queue, "camera", 1)
        let bytes = try figures(queue, "camera").pendingBytes
        #expect((Self.recordBytes...Self.recordBytes + 200).contains(bytes))
    }
}
