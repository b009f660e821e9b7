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

    @Test(
        arguments: [
            (nil, 2_000_000_000), (0, 2_000_000_000), (1_000_000_000, 500_000_000),
            (2_100_000_000, 1_050_000_000), (3_000_000_000, 2_000_000_000),
            (64_000_000_000, 32_000_000_000),
        ] as [(Int64?, Int64)]
    )
    func automaticSize_isHalf_andTwoGBWhereTheyFit(total: Int64?, size: Int64) {
        #expect(StorageSettings().limits(total: total).maxSize == size)
        var settings = StorageSettings()
        settings.maxSize = 5_000_000
        #expect(settings.limits(total: total).maxSize == 5_000_000)
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
        let sound = try queue.figures(.audio)
        #expect(sound.evicted > 0)
        #expect(sound.pending > 0)
        // There were few beacon records, so they did not fill the disk.
        #expect(try queue.figures(.beacons).evicted == 0)
        // A deletion that has just made room for the next records ends the level until they came.
        var segment = 1200
        try waitUntil("the board says so") {
            if queue.storage.state.value?.level == .full { return true }
            record(queue, segments: 1, from: segment)
            segment += 1
            return false
        }
        try checkSum(queue)
        let evicted = try queue.figures(.audio).evicted
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
        let final = try again.figures(.audio).evicted
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
        let batch = try queue.freeze(.audio, 1)
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
            #expect(try queue.figures(.beacons).accepted == turn * QueueSettings.mailboxLimit)
        }
        #expect(largest <= 525_000)
        #expect(try queue.figures(.beacons).evicted > 0)
        try checkSum(queue)
        // Records accepted just before the end are written too.
        for number in 0..<QueueSettings.mailboxLimit { queue.accept(testSighting(number)) }
        queue.close()
        let again = try Queue(settings: settings)
        #expect(try again.figures(.beacons).accepted == 4 * QueueSettings.mailboxLimit)
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
        let uploaded = try queue.freeze(.audio, 5)
        try queue.perform { try $0.uploaded(uploaded) }
        let refused = try queue.freeze(.audio, 5)
        try queue.perform { try $0.quarantine(refused, message: "bad") }
        let frozen = try queue.freeze(.audio, 5)
        let before = try queue.figures(.audio)

        // A little too little: uploaded records are enough.
        disk.free = 18_800_000
        queue.checkStorage()
        #expect(try queue.nextReady(.audio) == frozen)
        #expect(try queue.figures(.audio).evicted == 0)
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
            try queue.figures(.audio).evicted > before.quarantined
                && queue.storage.state.value?.room.free ?? 0 >= 4 << 20
        }
        #expect(try queue.perform { try $0.quarantined() }.isEmpty)
        #expect(try queue.nextReady(.audio) == frozen)
        #expect(try queue.figures(.audio).pending > 5)
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
        let sound = try queue.figures(.audio)
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
        let quarantined = try queue.freeze(.beacons, 10)
        try queue.perform { try $0.quarantine(quarantined, message: "bad") }
        disk.free = free
        for _ in 0..<20 {
            queue.checkStorage()
            _ = try queue.flushed()
        }
        #expect(try queue.losses().isEmpty)
        #expect(try queue.figures(.beacons).pending == 490)
        #expect(try queue.figures(.beacons).quarantined == 10)

        // Later records are refused, but for the program's own.
        #expect((try put() as? Failure)?.code == .storageFull)
        #expect(queue.fullRefusal?.code == .storageFull)
        #expect(!queue.accept(testSighting(500)))
        #expect(queue.accept(Event(.stopped, source: "test", stamp: testStart)))
        let isAnswered = Locked(false)
        let reply = JobReply(job: "1", kind: "sync", JobOutcome(.done), stamp: testStart)
        queue.put(reply, memos: ["job 1": "answered"]) { error in
            isAnswered.update { $0 = error == nil }
        }
        _ = try queue.flushed()
        #expect(isAnswered.value)
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
        #expect(try queue.figures(.beacons).pending == 2)
        #expect(try queue.figures(.beacons).evicted == 0)
        var seconds: [Int] = []
        try queue.reader().track { seconds.append(Int(($1.longitude * 1e6).rounded())) }
        #expect((500...3650).contains(seconds.count))
        #expect(seconds.first == 0)
        #expect(seconds.last == 59_999)
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
        #expect(try queue.figures(.audio).evicted > 0)
        try checkSum(queue)
        queue.close()
    }
}
