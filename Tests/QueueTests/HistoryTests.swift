import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
import Records

/// Combinations of faults that once lost, mixed up or invented records.
@Suite struct HistoryTests {
    private func upload(_ queue: Queue, _ range: ClosedRange<Int64>) throws {
        try queue.flushed()
        try queue.perform { writer in
            var pending = try #require(try writer.pending(.beacons))
            pending.first = range.lowerBound
            let batch = try #require(try writer.freeze(pending, through: range.upperBound))
            try writer.uploaded(batch)
        }
    }

    private func ids(_ queue: Queue, _ range: ClosedRange<Int64>) throws -> [String] {
        let ids = try queue.reader().ids(.beacons, range)
        return try range.map { try ids.id($0) }
    }

    // MARK: Numbers and ids

    /// Some of the newest are evicted, the backlog below them is frozen, and the program restarts.
    @Test func islandsThatWereEvicted_neverGiveTheirNumbersAgain() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        for number in 0..<300 { queue.accept(testSighting(number)) }
        try upload(queue, 201...300)
        let before = try ids(queue, 201...300)
        try queue.perform { writer in
            while try writer.evictUploaded() {}
            let rest = try #require(try writer.pending(.beacons))
            _ = try writer.freeze(rest, through: rest.last)
        }
        queue.close()
        queue = try folder.queue()
        #expect(queue.pending(.beacons) == nil)
        queue.accept(testSighting(1))
        #expect(try queue.flushed().pending(.beacons)?.first == 301)
        #expect(try !before.contains(ids(queue, 301...301)[0]))
        try checkSum(queue)
        queue.close()
    }

    @Test func droppedIsland_isNotPendingAfterARestart() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        for number in 0..<30 { queue.accept(testSighting(number)) }
        try queue.flushed()
        try queue.perform { writer in
            var newest = try #require(try writer.pending(.beacons))
            newest.first = 21
            let batch = try #require(try writer.freeze(newest, through: 30))
            try writer.quarantine(batch, message: "no")
            _ = try writer.drop(try #require(try writer.quarantined(number: batch.id)))
        }
        queue.close()
        queue = try folder.queue()
        #expect(queue.pending(.beacons)?.last == 20)
        try checkSum(queue)
        queue.close()
    }

    @Test func copiedState_createsNewIDs_butKeepsPendingOnes() throws {
        let first = TemporaryFolder()
        let second = TemporaryFolder()
        var queue = try first.queue()
        for number in 0..<10 { queue.accept(testSighting(number)) }
        queue.close()
        try FileManager.default.removeItem(atPath: second.path)
        try FileManager.default.copyItem(atPath: first.path, toPath: second.path)
        queue = try first.queue()
        let copy = try second.queue()
        for number in 0..<100 {
            queue.accept(testSighting(number))
            copy.accept(testSighting(number, rssi: -70))
        }
        try queue.flushed()
        try copy.flushed()
        #expect(try ids(queue, 1...10) == ids(copy, 1...10))
        let both = try ids(queue, 11...110) + ids(copy, 11...110)
        #expect(Set(both).count == 200)
        queue.close()
        copy.close()
    }

    /// A reader caches identities, so numbers of deleted `beacons` rows must not be reused while it
    /// lives.
    @Test func beaconRows_areNotUsedAgain_soAReaderMixesNothing() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        queue.accept(testSighting(1))
        queue.close()
        queue = try folder.queue()
        let reader = try queue.reader()
        try reader.sightings(1...1) { #expect($0.record.identity.beaconID.hasSuffix("/1")) }
        try upload(queue, 1...1)
        try queue.perform { writer in while try writer.evictUploaded() {} }
        queue.accept(testSighting(2))
        try queue.flushed()
        try reader.sightings(2...2) { #expect($0.record.identity.beaconID.hasSuffix("/2")) }
        queue.close()
    }

    // MARK: Audio

    private func segment(_ run: AudioRun, _ number: Int, bytes: Int = 100) -> Segment {
        Segment(
            run: run.id,
            frames: 16_000,
            start: testStart.advanced(by: .seconds(number)),
            meanSquare: 0.01,
            data: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bytes)
        )
    }

    /// Segments that memory cannot hold while the disk fails leave a gap; no chunk spans it.
    @Test func segmentsThatWereRefused_endTheRun_andAreCounted() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let run = AudioRun(id: queue.newRunID(), codec: .wav, rate: 16_000, device: "mic")
        try queue.perform { writer in
            try writer.begin(run)
            for number in (0..<40) where !(5..<20).contains(number) {
                var next = segment(run, number)
                next.index = Int64(number)
                try writer.insert(next)
            }
            try writer.endRun(count: 43)
        }
        let reader = try queue.reader()
        var spans: [[UInt8]] = []
        try reader.chunks(1...queue.newest(.audio)) { stored in
            let record = stored.record
            spans.append(
                try (0..<Int64(record.segments)).map {
                    try reader.segment(record.firstSegment + $0)?.data.first ?? 0
                }
            )
        }
        for span in spans {
            #expect(zip(span, span.dropFirst()).allSatisfy { $1 == $0 + 1 }, "\(span)")
        }
        let sound = Set(spans.joined())
        let heard = Set<UInt8>(0..<5).union(20..<40)
        #expect(sound == heard)
        let losses = try queue.losses().filter { $0.stream == .audio && $0.kind == .dropped }
        // Fifteen seconds and then three, in chunks of fourteen.
        #expect(losses.map(\.records) == [3])
        queue.close()
    }

    @Test func killBeforeTheFirstChunk_leavesAChunk_afterASalvage() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        record(queue, segments: 20)
        try queue.flushed()
        queue.reportDamage("a reader", generation: queue.generation)
        try queue.flushed()
        let run = AudioRun(id: queue.newRunID(), codec: .opus, rate: 16_000, device: "mic")
        queue.begin(run)
        for number in 0..<13 { queue.accept(segment(run, number)) }
        // Closing without ending the run looks like a crash to the database.
        queue.close()
        queue = try folder.queue()
        let live = try queue.liveStatistics().first { $0.stream == .audio }
        #expect(live?.pending == 1)
        let reader = try queue.reader()
        try reader.chunks(1...1) { #expect($0.record.segments == 13) }
        queue.close()
    }

    // MARK: The writer

    /// The database is replaced during a transaction: its records are in the new one, or were
    /// committed to the old.
    @Test func transactionRecords_surviveDatabaseReplacement() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(commitInterval: .seconds(3600))
        for number in 0..<50 { queue.accept(testSighting(number)) }
        queue.reportDamage("the disk", generation: queue.generation)
        for number in 50..<60 { queue.accept(testSighting(number)) }
        try waitUntil("each is there, in one of both") {
            try queue.flushed().statistics().first { $0.stream == .beacons }?.pending == 60
        }
        queue.close()
    }

    @Test func callersThatComeAfterTheEnd_areAnswered() throws {
        let folder = TemporaryFolder()
        for _ in 0..<50 {
            let queue = try folder.queue()
            let asking = try OwnThread("asking") {
                for _ in 0..<100 { _ = try? queue.perform { _ in } }
            }
            queue.close()
            asking.join()
            #expect(throws: QueueClosedError.self) { try queue.perform { _ in } }
        }
    }

    @Test func questions_commitNothing() throws {
        let folder = TemporaryFolder()
        var settings = QueueSettings(
            path: folder.database,
            bootID: "boot",
            commitInterval: .seconds(3600),
            appVersion: "test"
        )
        // Driven by the test: at the start, maintenance makes the writer commit at an unpredictable
        // time.
        settings.isTurnedByHand = true
        let queue = try Queue(settings: settings)
        while queue.turnMaintenance() {}
        queue.accept(testSighting(1))
        try queue.flushed()
        queue.accept(testSighting(2))
        queue.turn()
        _ = queue.pending(.beacons)
        _ = try queue.nextReady(.beacons)
        _ = try queue.losses()
        #expect(queue.statistics().first { $0.stream == .beacons }?.pending == 1)
        queue.close()
    }

    // MARK: Retention

    /// More than one batch per tick, and batches of the newest records before older ones.
    @Test func retention_takesAllThatIsDue_inOneTick() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        for number in 0..<9000 { queue.accept(testSighting(number)) }
        for first in stride(from: 8701, through: 1, by: -300) {
            try upload(queue, Int64(first)...Int64(first + 299))
        }
        clock.advance(by: .seconds(3600))
        queue.accept(testSighting(1))
        queue.purge(retention: .seconds(60))
        let database = try Connection(path: folder.database, access: .readOnly)
        try waitUntil("all of it is deleted") {
            try database.integer("SELECT count(*) FROM batches") == 0
        }
        #expect(try database.integer("SELECT count(*) FROM gone") == 1)
        #expect(try database.integer("SELECT count(*) FROM sightings") ?? 9 <= 1)
        queue.close()
    }

    // MARK: The loss ledger

    @Test func damagedTableWithOneRecord_isNotReportedAsThousands() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        queue.accept(Event(.started, source: "gateway", stamp: testStart))
        for number in 0..<500 { queue.accept(testSighting(number)) }
        queue.close()
        let database = try Connection(path: folder.database, access: .readWrite)
        let page = try #require(
            try database.integer("SELECT rootpage FROM sqlite_schema WHERE name='events'")
        )
        let size = try #require(try database.integer("PRAGMA page_size"))
        let file = try #require(FileHandle(forUpdatingAtPath: folder.database))
        try file.seek(toOffset: UInt64((page - 1) * size))
        try file.write(contentsOf: Data(repeating: 0xA5, count: Int(size)))
        try file.close()
        queue = try folder.queue()
        try waitUntil("the salvage is reported") {
            try queue.flushed().losses().contains { $0.stream == .events && $0.kind == .corrupt }
        }
        #expect(try queue.losses().filter { $0.kind == .corrupt }.map(\.records) == [1])
        queue.close()
    }
}
