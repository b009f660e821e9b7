import Foundation
import Host
import StatusBoard
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Synchronization
import Testing

/// Eviction when space runs out: the order, and that it is reported.
@Suite struct StorageTests {
    /// Free space that a test sets.
    private final class Disk: Sendable {
        private let bytes: Mutex<Int64>

        init(free: Int64) { bytes = Mutex(free) }

        var free: Int64 {
            get { bytes.withLock { $0 } }
            set { bytes.withLock { $0 = newValue } }
        }
    }

    private func figures(_ queue: Queue, _ stream: Records.Stream) throws -> StreamStatistics {
        try #require(try queue.flushed().statistics().first { $0.stream == stream })
    }

    private func freeze(_ queue: Queue, _ stream: Records.Stream, _ count: Int64) throws -> Batch {
        try queue.perform { writer in
            let range = try #require(try writer.pending(stream))
            return try #require(try writer.freeze(range, through: range.first + count - 1))
        }
    }

    @Test func maxSize_isKept_andTheOldestOfTheLargestStreamGoes() throws {
        let folder = TemporaryFolder()
        let limits = StorageLimits(maxSize: 4_000_000, warnFree: 0, criticalFree: 0)
        let queue = try folder.queue(commitInterval: .milliseconds(5), limits: limits)
        queue.accept(testSighting(0))
        var largest: Int64 = 0
        for round in 0..<40 {
            record(queue, segments: 30, from: round * 30)
            _ = try queue.perform { _ in true }
            let size = FileSpace.size(folder.database) + FileSpace.size(folder.database + "-wal")
            largest = max(largest, size)
        }
        #expect(largest <= 4_200_000)
        let sound = try figures(queue, .audio)
        #expect(sound.evicted > 0)
        #expect(sound.pending > 0)
        // There were few beacon records, so they did not fill the disk.
        #expect(try figures(queue, .beacons).evicted == 0)
        try waitUntil("the board says so") { queue.storage.state.value?.level == .full }
        try checkSum(queue)
        let evicted = try figures(queue, .audio).evicted
        let losses = try queue.losses()
        let loss = try #require(losses.first)
        #expect(loss.kind == .evicted)
        #expect(loss.stream == .audio)
        #expect(loss.records == evicted)
        #expect(loss.from == testStart.wall)
        queue.close()

        // The events add up to the number of evicted records.
        let again = try folder.queue(limits: limits)
        let reader = try again.reader()
        let final = try figures(again, .audio).evicted
        var reported = 0
        try reader.events(1...1000) { _, kind, _, detail in
            guard kind == "evicted" else { return }
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(detail.utf8)) as? [String: Any]
            )
            #expect(object["stream"] as? String == "audio")
            #expect(object["code"] as? String == "E004")
            reported += try #require(object["records"] as? Int)
        }
        #expect(reported == final)
        again.close()
    }

    /// The event says when records were deleted, and the level ends once uploads make room.
    @Test func eviction_isDatedCorrectly_andFullEndsWithAnUpload() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let limits = StorageLimits(maxSize: 1_000_000, warnFree: 0, criticalFree: 0)
        let queue = try folder.queue(clock: clock, limits: limits)
        func fill(from round: Int) throws {
            record(queue, segments: 300, from: round)
            _ = try queue.flushed()
            queue.checkStorage()
            _ = try queue.flushed()
        }
        try fill(from: 0)
        #expect(queue.storage.state.value?.level == .full)
        clock.advance(by: .seconds(60))
        let second = clock.now().milliseconds
        try fill(from: 300)
        clock.advance(by: .seconds(120))
        let batch = try freeze(queue, .audio, 1)
        try queue.perform { try $0.uploaded(batch) }
        queue.checkStorage()
        _ = try queue.flushed()
        #expect(queue.storage.state.value?.level == .ok)
        queue.close()
        let database = try Connection(path: folder.database, access: .readOnly)
        let rows = try database.prepare(
            "SELECT boottime FROM events WHERE kind='evicted' ORDER BY id"
        )
        var dates: [Int64] = []
        while try rows.step() { dates.append(rows.required(0)) }
        #expect(dates == [second - 60_000, second])
    }

    @Test func maxSize_isKept_byAFloodInTheFirstTurn() throws {
        let folder = TemporaryFolder()
        var settings = QueueSettings(at: folder.database)
        settings.limits = StorageLimits(maxSize: 500_000, warnFree: 0, criticalFree: 0)
        settings.isTurnedByHand = true
        let queue = try Queue(settings: settings)
        var largest: Int64 = 0
        for turn in 1...3 {
            for number in 0..<QueueSettings.mailboxLimit { queue.accept(testSighting(number)) }
            _ = try queue.perform { _ in true }
            let size = FileSpace.size(folder.database) + FileSpace.size(folder.database + "-wal")
            largest = max(largest, size)
            #expect(try figures(queue, .beacons).accepted == turn * QueueSettings.mailboxLimit)
        }
        #expect(largest <= 525_000)
        #expect(try figures(queue, .beacons).evicted > 0)
        try checkSum(queue)
        // Records accepted just before the end are written too.
        for number in 0..<QueueSettings.mailboxLimit { queue.accept(testSighting(number)) }
        queue.close()
        let again = try Queue(settings: settings)
        #expect(try figures(again, .beacons).accepted == 4 * QueueSettings.mailboxLimit)
        #expect(try again.losses().allSatisfy { $0.kind == .evicted })
        again.close()
    }

    /// As many as the intake batches, in the smallest database that can be configured.
    @Test func batchedRecords_fitIntoAFullSmallDatabase() throws {
        let folder = TemporaryFolder()
        var settings = QueueSettings(at: folder.database)
        settings.limits = StorageLimits(maxSize: 1_000_000, warnFree: 0, criticalFree: 0)
        settings.userStreams = [DeclaredStream(name: "weather", wire: "weather")]
        let queue = try Queue(settings: settings)
        let longest = 65_536
        let text = Array("\"t\":\"\(String(repeating: "x", count: longest))\"".utf8)
        for _ in 0..<20 {
            var records: [UserRecord] = []
            while records.count * longest < queue.putBytes {
                let stamp = settings.clock.stamp()
                records.append(UserRecord(stream: "weather", stamp: stamp, members: text))
            }
            let outcome = Locked<String?>(nil)
            queue.put(records) { error in outcome.update { $0 = error.map { "\($0)" } ?? "kept" } }
            try waitUntil("the records") { outcome.value != nil }
            #expect(outcome.value == "kept")
        }
        queue.close()
    }

    @Test func eviction_takesUploadedBeforePending_neverFrozen() throws {
        let folder = TemporaryFolder()
        let disk = Disk(free: 1_000_000_000)
        let queue = try folder.queue(
            limits: StorageLimits(warnFree: 20_000_000, criticalFree: 10_000_000),
            freeSpace: { _ in disk.free }
        )
        record(queue, segments: 600, bytes: 20_000)
        let uploaded = try freeze(queue, .audio, 5)
        try queue.perform { try $0.uploaded(uploaded) }
        let refused = try freeze(queue, .audio, 5)
        try queue.perform { try $0.quarantine(refused, message: "bad") }
        let frozen = try freeze(queue, .audio, 5)
        let before = try figures(queue, .audio)

        // A little too little: uploaded records are enough.
        disk.free = 18_800_000
        queue.checkStorage()
        #expect(try queue.nextReady(.audio) == frozen)
        #expect(try figures(queue, .audio).evicted == 0)
        #expect(try queue.perform { try $0.quarantined() }.count == 1)
        #expect(queue.soundRefusal == nil)
        let reader = try queue.reader()
        var kept: [Int64] = []
        try reader.chunksThere(1...10) { kept.append($0.sequence) }
        #expect(kept == [6, 7, 8, 9, 10])

        // Far too little: all steps of the order, down to the goal.
        disk.free = 0
        queue.checkStorage()
        _ = try queue.perform { _ in true }
        let refusal = try #require(queue.soundRefusal)
        #expect(refusal.code == .storageFull)
        // 12 MB of audio: pending chunks go, too, until there are 4 MiB.
        try waitUntil("enough is free") {
            try figures(queue, .audio).evicted > before.quarantined
                && queue.storage.state.value?.room.free ?? 0 >= 4 << 20
        }
        #expect(try queue.perform { try $0.quarantined() }.isEmpty)
        #expect(try queue.nextReady(.audio) == frozen)
        #expect(try figures(queue, .audio).pending > 5)
        try checkSum(queue)

        // Space is back: audio is recorded again, without a restart.
        disk.free = 1_000_000_000
        queue.checkStorage()
        _ = try queue.perform { _ in true }
        #expect(queue.soundRefusal == nil)
        queue.close()
    }

    @Test func othersFillTheDisk_atMostHalfOfTheDatabaseIsGiven() throws {
        let folder = TemporaryFolder()
        let disk = Disk(free: 1_000_000_000)
        let queue = try folder.queue(freeSpace: { _ in disk.free })
        record(queue, segments: 600, bytes: 20_000)
        _ = try queue.perform { _ in true }
        disk.free = 0
        for _ in 0..<20 {
            queue.checkStorage()
            _ = try queue.perform { _ in true }
        }
        let sound = try figures(queue, .audio)
        #expect(sound.evicted > 0)
        #expect(sound.pending > sound.accepted / 4)
        try checkSum(queue)
        queue.close()
    }

    /// A database of less than 8 MiB cannot free 4 MiB: deleting what waits helps nobody.
    @Test(arguments: [0, 1_000_000, 3_000_000])
    func smallDatabase_deletesNoPending_ifOthersFillTheDisk(free: Int64) throws {
        let folder = TemporaryFolder()
        let disk = Disk(free: 1_000_000_000)
        let queue = try Queue(at: folder.database) {
            $0.userStreams = [DeclaredStream(name: "weather", wire: "weather")]
            $0.freeSpace = { _ in disk.free }
        }
        defer { queue.close() }
        func put() throws -> (any Error)? {
            let outcome = Locked<Result<Void, any Error>?>(nil)
            let record = UserRecord(
                stream: "weather",
                stamp: testStart,
                members: Array("\"t\":1".utf8)
            )
            queue.put([record]) { error in
                outcome.update { $0 = error.map { .failure($0) } ?? .success(()) }
            }
            try waitUntil("an answer") { outcome.value != nil }
            guard case .failure(let error)? = outcome.value else { return nil }
            return error
        }
        for number in 0..<500 { queue.accept(testSighting(number)) }
        #expect(try put() == nil)
        let quarantined = try freeze(queue, .beacons, 10)
        try queue.perform { try $0.quarantine(quarantined, message: "bad") }
        disk.free = free
        for _ in 0..<20 {
            queue.checkStorage()
            _ = try queue.flushed()
        }
        #expect(try queue.losses().isEmpty)
        #expect(try figures(queue, .beacons).pending == 490)
        #expect(try figures(queue, .beacons).quarantined == 10)

        // Later records are refused, but for the program's own.
        #expect((try put() as? Failure)?.code == .storageFull)
        #expect(queue.fullRefusal?.code == .storageFull)
        #expect(!queue.accept(testSighting(500)))
        #expect(queue.accept(Event(.stopped, source: "test", stamp: testStart)))
        _ = try queue.flushed()
        let losses = try queue.losses()
        #expect(losses.map(\.kind) == [.gap])
        #expect(losses.map(\.records) == [1])
        #expect(queue.storage.state.value?.isFull == true)
        try checkSum(queue)

        disk.free = 1_000_000_000
        queue.checkStorage()
        _ = try queue.flushed()
        #expect(try put() == nil)
        #expect(queue.accept(testSighting(501)))
        #expect(queue.fullRefusal == nil)
    }

    /// The track is thinned, and keeps its first and last point.
    @Test func surveyThatNobodyStops_leavesTheRoomToRecords() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let limits = StorageLimits(maxSize: 1_000_000, warnFree: 0, criticalFree: 0)
        var queue = try folder.queue(clock: clock, limits: limits)
        queue.accept(testSighting(0))
        try queue.startSurvey("forgotten")
        func walk(_ seconds: Range<Int>) throws {
            for second in seconds {
                if second % 5000 == 0 { _ = try queue.flushed() }
                queue.record(
                    place: Fix(
                        stamp: testStart.advanced(by: .seconds(second)),
                        mode: .threeDimensional,
                        latitude: 46.5,
                        longitude: Double(second) / 1e6
                    )
                )
            }
        }
        try walk(0..<30_000)
        queue.close()
        queue = try folder.queue(clock: clock, limits: limits)
        try walk(30_000..<60_000)
        queue.accept(testSighting(1))
        #expect(try figures(queue, .beacons).pending == 2)
        #expect(try figures(queue, .beacons).evicted == 0)
        var seconds: [Int] = []
        try queue.reader().track { seconds.append(Int(($1.longitude * 1e6).rounded())) }
        #expect((500...3650).contains(seconds.count))
        #expect(seconds.first == 0)
        #expect(seconds.last == 59_999)
        queue.close()
    }

    @Test func purge_goesOnBehindWhatIsInQuarantine() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        for number in 0..<30 { queue.accept(testSighting(number)) }
        let bad = try freeze(queue, .beacons, 10)
        try queue.perform { try $0.quarantine(bad, message: "bad") }
        let good = try freeze(queue, .beacons, 10)
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
        let first = try freeze(queue, .audio, 1)
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
        let rest = try freeze(queue, .audio, 2)
        try queue.perform { try $0.uploaded(rest) }
        clock.advance(by: .seconds(61))
        #expect(try queue.perform { try $0.purge(.audio, retention: .seconds(60)) } == 2)
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM segments") == 0)
        queue.close()
    }

    @Test func overrun_isCountedAndReported() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let isHeld = Mutex(true)
        let holder = Thread {
            // Keep the writer busy for a while.
            _ = try? queue.perform { _ in while isHeld.withLock({ $0 }) { usleep(500) } }
        }
        holder.start()
        try waitUntil("the writer is held") {
            for number in 0..<25_000 { queue.accept(testSighting(number)) }
            return !queue.newLosses.isEmpty
        }
        isHeld.withLock { $0 = false }
        try waitUntil("the loss is recorded") { queue.newLosses.isEmpty }
        let losses = try queue.flushed().losses()
        #expect(losses.map(\.kind) == [.overrun])
        #expect(losses.first?.stream == .beacons)
        try checkSum(queue)
        queue.close()
        let reader = try folder.queue().reader()
        var events: [String] = []
        try reader.events(1...100) { _, kind, _, detail in events.append("\(kind) \(detail)") }
        #expect(
            events.contains { $0.hasPrefix("gap {\"stream\":\"beacons\",\"kind\":\"overrun\"") }
        )
    }

    /// A loss that a source reports has no sequence number; it is recorded even if no record
    /// follows.
    @Test func sourceLoss_isRecordedAndReported_ifNoRecordFollows() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let stamp = SystemClock().stamp()
        queue.record(Loss(.missed, .beacons, records: 3, from: stamp, to: stamp))
        queue.record(Loss(.missed, .beacons, records: 4, from: stamp, to: stamp))
        try waitUntil("the loss is recorded") { queue.newLosses.isEmpty }
        let losses = try queue.flushed().losses()
        #expect(losses.map(\.kind) == [.missed])
        #expect(losses.map(\.records) == [7])
        try checkSum(queue)
        queue.close()
        let reader = try folder.queue().reader()
        var events: [String] = []
        try reader.events(1...100) { _, kind, _, detail in events.append("\(kind) \(detail)") }
        #expect(
            events.contains { $0.hasPrefix("gap {\"stream\":\"beacons\",\"kind\":\"missed\"") }
        )
    }

    @Test func muchAtOnce_isNotGivenUpWhileTheDiskWorks() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        let isHeld = Mutex(true)
        let holder = Thread {
            _ = try? queue.perform { _ in while isHeld.withLock({ $0 }) { usleep(500) } }
        }
        holder.start()
        // More audio and sightings than memory holds while the disk fails.
        record(queue, segments: 600, bytes: 20_000)
        for number in 0..<15_000 { queue.accept(testSighting(number)) }
        isHeld.withLock { $0 = false }
        #expect(try figures(queue, .audio).accepted == 43)
        #expect(try figures(queue, .beacons).accepted == 15_000)
        #expect(try queue.flushed().losses().isEmpty)
        try checkSum(queue)
        queue.close()
    }

    @Test func work_thatFails_leavesNothingBehind() throws {
        struct Refused: Error {}
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        for number in 0..<100 { queue.accept(testSighting(number)) }
        let batch = try freeze(queue, .beacons, 64)
        #expect(throws: Refused.self) {
            try queue.perform { writer in
                try writer.split(batch)
                throw Refused()
            }
        }
        #expect(try queue.nextReady(.beacons) == batch)
        try checkSum(queue)
        queue.close()
    }

    @Test func lowerLimit_shrinksTheFile() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(commitInterval: .milliseconds(5))
        record(queue, segments: 1000, bytes: 12_000)
        _ = try queue.perform { _ in true }
        queue.limit(StorageLimits(maxSize: 5_000_000, warnFree: 0, criticalFree: 0))
        try waitUntil("the file is small") {
            queue.checkStorage()
            let size = FileSpace.size(folder.database) + FileSpace.size(folder.database + "-wal")
            return size <= 5_250_000
        }
        #expect(try figures(queue, .audio).evicted > 0)
        try checkSum(queue)
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
        #expect(try figures(queue, .beacons).pending == 110)
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
