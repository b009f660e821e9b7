import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
import QueueSupport
@testable import Records

/// A second fault while the first is being repaired.
@Suite struct FaultsInARowTests {
    private func settings(_ folder: TemporaryFolder, _ streams: [String] = []) -> QueueSettings {
        var settings = QueueSettings(
            path: folder.database,
            bootID: "boot",
            commitInterval: .seconds(60),
            appVersion: "test"
        )
        settings.userStreams = streams.map { DeclaredStream(name: $0, wire: $0) }
        return settings
    }

    /// Uploads a stream's pending records of older databases; returns how many there were.
    private func drain(_ queue: Queue, _ stream: Records.Stream) throws -> Int {
        var records = 0
        while let range = queue.pending(stream), range.database > 0 {
            try queue.perform { writer in
                let batch = try #require(try writer.freeze(range, through: range.last))
                try writer.uploaded(batch)
            }
            records += Int(range.last - range.first + 1)
        }
        return records
    }

    private func user(_ stream: String, _ value: Int) -> UserRecord {
        UserRecord(stream: stream, stamp: testStart, members: Array("\"n\":\(value)".utf8))
    }

    private func put(_ queue: Queue, _ record: UserRecord) throws {
        let answer = Holder()
        queue.put([record]) { answer.set($0) }
        try queue.flushed()
        #expect(answer.isGood)
    }

    private final class Holder: @unchecked Sendable {
        private let lock = NSLock()
        private var good = false

        func set(_ error: (any Error)?) { lock.withLock { good = error == nil } }
        var isGood: Bool { lock.withLock { good } }
    }

    /// The commit before a query finds damage, and the query fails: no record is rolled back.
    @Test func refusedQuestion_afterAReplacement_losesNoRecord() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(settings: settings(folder))
        queue.accept(testSighting(0))
        try queue.flushed()
        try queue.perform { try $0.checkpoint(waiting: true) }
        try spoilSequences(folder)
        for number in 0..<10 { queue.accept(testSighting(number)) }
        #expect(throws: (any Error).self) { try queue.endSurvey() }
        #expect(queue.generation == 2)
        #expect(try queue.flushed().newest(.beacons) == 10)
        queue.close()
    }

    /// The page of the sequence numbers is not read before the next commit.
    private func spoilSequences(_ folder: TemporaryFolder) throws {
        let other = try Connection(path: folder.database, access: .readWrite)
        let page = try #require(
            try other.integer("SELECT rootpage FROM sqlite_schema WHERE name='sequences'")
        )
        let file = try #require(FileHandle(forUpdatingAtPath: folder.database))
        try file.seek(toOffset: UInt64((page - 1) * 1024))
        try file.write(contentsOf: Data(repeating: 0xA5, count: 1024))
        try file.close()
        // Makes the writer discard its page cache.
        try other.execute("INSERT INTO traffic VALUES (1,1,1)")
    }

    /// A changed byte marks an older database as finished: its pending records are still sent.
    @Test func databaseThatOnlySaysItIsFinished_isDrained() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(settings: settings(folder))
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.flushed()
        try queue.damage()
        queue.close()
        do {
            let other = try Connection(path: folder.database, access: .readWrite)
            try other.execute("UPDATE databases SET state=2")
        }
        let after = try Queue(settings: settings(folder))
        #expect(try drain(after, .beacons) == 10)
        #expect(try after.unsent(.beacons, through: 0) == 0)
        after.close()
    }

    @Test func drainedDatabase_isNotDrainedAgain_afterNewDamage() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(settings: settings(folder))
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.flushed()
        try queue.damage()
        #expect(try drain(queue, .beacons) == 10)
        #expect(try drain(queue, .events) == 0)
        try queue.damage()
        #expect(queue.setAside.count == 2)
        #expect(try drain(queue, .beacons) == 0)
        queue.close()
    }

    /// A device without an RTC may quarantine the second one at an earlier time of day.
    @Test func secondDamage_withTheClockSetBack_sendsNothingAgain() throws {
        let folder = TemporaryFolder()
        let clock = SetClock()
        var settings = settings(folder)
        settings.clock = clock
        let queue = try Queue(settings: settings)
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.flushed()
        try queue.damage()
        try queue.perform { writer in
            let range = PendingRange(
                stream: .beacons,
                first: 1,
                last: 5,
                clockMap: 0,
                synced: false,
                database: 1
            )
            try writer.uploaded(try #require(try writer.freeze(range, through: 5)))
        }
        clock.setBack()
        try queue.damage()
        #expect(try drain(queue, .beacons) == 5)
        queue.close()
    }

    /// `status` says that it may be deleted.
    @Test func deletedDatabase_isRecordedAsLost_andBlocksNothing() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(settings: settings(folder))
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.flushed()
        try queue.damage()
        let range = try #require(queue.pending(.beacons))
        _ = try queue.perform { try $0.freeze(range, through: 4) }
        for aside in queue.setAside {
            try FileManager.default.removeItem(atPath: aside.path)
        }
        #expect(throws: (any Error).self) { try queue.reader(of: 1) }
        queue.accept(testSighting(1))
        try queue.flushed()
        #expect(try queue.nextReady(.beacons) == nil)
        #expect(queue.pending(.beacons)?.database == 0)
        let lost = try queue.losses().filter { $0.kind == .corrupt && $0.stream == .beacons }
        #expect(lost.map(\.records) == [10])
        queue.close()
    }

    /// The frozen values of a batch of the first database are found in the third, too.
    @Test func batchOfTheFirstOfThreeDatabases_isDatedTheSame() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(settings: settings(folder))
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.perform { writer in
            try writer.recordClock(testStart, synced: true)
            let range = try #require(try writer.pending(.beacons))
            _ = try #require(try writer.freeze(range, through: 4))
        }
        try queue.damage()
        let own = try #require(try queue.nextReady(.beacons))
        let range = try #require(queue.pending(.beacons))
        let later = try queue.perform { try #require(try $0.freeze(range, through: range.last)) }
        try queue.damage()
        let ready = try queue.perform { try $0.batches("WHERE state=0 ORDER BY first") }
        #expect(ready.map(\.key) == [own.key, later.key])
        #expect(ready.first?.clockMap == own.clockMap)
        #expect((ready.last?.clockMap ?? 0) > 0)
        queue.close()
    }

    /// Pending records of the previous database are frozen in the next one.
    @Test func staleRange_isFrozenWithAnEntryThatIsThere() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(settings: settings(folder))
        queue.accept(testSighting(0))
        try queue.perform { try $0.recordClock(testStart, synced: false) }
        var range = try #require(queue.pending(.beacons))
        range.clockMap = 500
        let stale = range
        let batch = try #require(try queue.perform { try $0.freeze(stale, through: 1) })
        #expect(batch.clockMap == 1)
        queue.close()
    }

    // MARK: User streams

    /// A replacement database renumbers the streams: a name still means the same stream.
    @Test func userStreams_areNotMixed_byReplacementAtStart() throws {
        let folder = TemporaryFolder()
        var queue = try Queue(settings: settings(folder, ["zeta"]))
        queue.declare([.init(name: "alpha", wire: "alpha"), .init(name: "zeta", wire: "zeta")])
        try put(queue, user("zeta", 1))
        try put(queue, user("alpha", 2))
        queue.close()
        try spoilHeader(folder)
        queue = try Queue(settings: settings(folder, ["alpha"]))
        try queue.waitUntilSalvaged()
        for (name, value) in [("zeta", 1), ("alpha", 2)] {
            let stream = try #require(queue.streams[name: name]?.stream)
            let range = try #require(queue.pending(stream))
            #expect(range.database == 1)
            #expect(try members(queue, range) == ["\"n\":\(value)"])
        }
        queue.close()
    }

    /// The number of a stream in an older database may mean another stream by now.
    @Test func userStream_whoseNumberIsTaken_isStillUploaded() throws {
        let folder = TemporaryFolder()
        var queue = try Queue(settings: settings(folder, ["zeta"]))
        try put(queue, user("zeta", 1))
        queue.close()
        let aside = folder.path + "/aside"
        try FileManager.default.moveItem(atPath: folder.database, toPath: aside)
        queue = try Queue(settings: settings(folder, ["alpha"]))
        try put(queue, user("alpha", 2))
        queue.close()
        let name = folder.database + ".corrupt-20260101T000000Z"
        try FileManager.default.moveItem(atPath: aside, toPath: name)
        queue = try Queue(settings: settings(folder, ["alpha"]))
        try queue.waitUntilSalvaged()
        for (name, value, database) in [("zeta", 1, 1), ("alpha", 2, 0)] {
            let stream = try #require(queue.streams[name: name]?.stream)
            let range = try #require(queue.pending(stream))
            #expect(range.database == database)
            #expect(try members(queue, range) == ["\"n\":\(value)"])
        }
        queue.close()
    }

    @Test func userStreams_areNotMixed_byReplacementInTransaction() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(settings: settings(folder, ["zeta", "gone"]))
        queue.declare([.init(name: "alpha", wire: "alpha"), .init(name: "zeta", wire: "zeta")])
        queue.put([user("zeta", 1)]) { _ in }
        queue.put([user("alpha", 2)]) { _ in }
        try queue.damage()
        try queue.flushed()
        for (name, value) in [("zeta", 1), ("alpha", 2)] {
            let stream = try #require(queue.streams[name: name]?.stream)
            // On a busy machine the transaction may have been committed before the damage: then it
            // is in the older one.
            let range = try #require(queue.pending(stream))
            #expect(try members(queue, range) == ["\"n\":\(value)"])
        }
        queue.close()
    }

    private func members(_ queue: Queue, _ range: PendingRange) throws -> [String] {
        let reader = try queue.reader(of: range.database)
        var found: [String] = []
        try reader.rows(reader.kind(of: range.stream), range.first...range.last) { stored in
            _ = try reader.ids(range.stream, stored.sequence...stored.sequence).id(stored.sequence)
            if case .bytes(let bytes) = stored.record.values[1] {
                found.append(String(decoding: bytes, as: UTF8.self))
            }
        }
        return found
    }

    private func spoilHeader(_ folder: TemporaryFolder) throws {
        // Damage an unused page, so that the check finds damage but everything can be read.
        let other = try Connection(path: folder.database, access: .readWrite)
        try other.execute("CREATE TABLE junk(a); INSERT INTO junk VALUES (1)")
        let page = try #require(
            try other.integer("SELECT rootpage FROM sqlite_schema WHERE name='junk'")
        )
        _ = try other.integer("PRAGMA wal_checkpoint(TRUNCATE)")
        let file = try #require(FileHandle(forUpdatingAtPath: folder.database))
        try file.seek(toOffset: UInt64((page - 1) * 1024))
        try file.write(contentsOf: Data(repeating: 0xA5, count: 1024))
        try file.close()
    }

    // MARK: Impossible numbers

    @Test(arguments: [
        "UPDATE gone SET first=1, last=9223372036854775807",
        "INSERT INTO gone VALUES (0,3,-9223372036854775808,9223372036854775807)",
        "INSERT INTO gone VALUES (0,3,5,4611686018427387904)",
        "UPDATE batches SET first=-9223372036854775807, last=9223372036854775807",
        "UPDATE batches SET last=9223372036854775807",
        "UPDATE sequences SET next=9223372036854775807",
        "UPDATE sequences SET next=-9223372036854775808",
        "UPDATE chunks SET frames=9223372036854775807",
        "UPDATE chunks SET first_segment=9223372036854775807",
        "UPDATE chunks SET first_segment=9223372036854775807, segments=9223372036854775807",
        "UPDATE segments SET frames=9223372036854775807",
        "UPDATE runs SET rate=-9223372036854775808, chunked=9223372036854775807",
        "UPDATE runs SET overlap_segments=9223372036854775807, preskip=9223372036854775807",
        "INSERT INTO sightings SELECT 9223372036854775807,1,1,1,1,1,NULL,NULL",
        "INSERT INTO chunks SELECT 9223372036854775807,run,1,1,1,1,0,1,1,1,1 FROM chunks LIMIT 1",
        "UPDATE boots SET id=9223372036854775807",
        "INSERT INTO clock_map VALUES (9223372036854775807,1,9223372036854775807,-9,1,'kernel')",
        "UPDATE clock_map SET boottime=9223372036854775807, wall=-9223372036854775808, synced=1",
    ])
    func numbersFromADamagedDatabase_stopNothing(_ damage: String) throws {
        let folder = TemporaryFolder()
        var queue = try Queue(settings: settings(folder))
        for number in 0..<10 { queue.accept(testSighting(number)) }
        record(queue, segments: 20, bytes: 100)
        try queue.perform { writer in
            try writer.recordClock(testStart, synced: false)
            let range = try #require(try writer.pending(.beacons))
            _ = try #require(try writer.freeze(range, through: 2))
        }
        queue.close()
        do {
            let other = try Connection(path: folder.database, access: .readWrite)
            try other.execute(damage)
        }
        try spoilHeader(folder)
        queue = try Queue(settings: settings(folder))
        try queue.waitUntilSalvaged()
        queue.accept(testSighting(0))
        #expect(try queue.flushed().newest(.beacons) == 1)
        queue.close()
    }
}

/// A clock whose time of day can be set back.
private final class SetClock: HostClock, @unchecked Sendable {
    private let lock = NSLock()
    private var offset: Int64 = 0

    func setBack() { lock.withLock { offset = -400 * 86_400_000 } }
    func now() -> BootInstant { SystemClock().now() }
    func wall() -> WallTime {
        WallTime(milliseconds: SystemClock().wall().milliseconds + lock.withLock { offset })
    }
}
