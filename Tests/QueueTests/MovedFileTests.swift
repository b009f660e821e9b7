import Foundation
import Host
import SQLite
import StatusBoard
import Support
import Testing

@testable import Queue
import QueueSupport
import Records

/// Somebody deletes or replaces the database while the gateway runs.
@Suite struct MovedFileTests {
    private func accept(_ queue: Queue, _ numbers: Range<Int>) throws {
        for number in numbers { queue.accept(testSighting(number)) }
        try queue.flushed()
    }

    /// Runs the health timer's tick and waits for its effect; `before` is the previous database.
    ///
    /// The salvage at the start may query the writer before that, which notices it as well.
    private func tick(_ queue: Queue, after before: Int) throws {
        queue.checkStorage()
        try waitUntil("a new database") { queue.generation > before }
        try queue.waitUntilSalvaged()
    }

    private func beacons(_ queue: Queue) throws -> StreamStatistics {
        try #require(try queue.flushed().statistics().first { $0.stream == .beacons })
    }

    private func ids(_ queue: Queue, of database: Int64, _ count: Int64) throws -> [String] {
        let reader = try queue.reader(of: database)
        return try (1...count).map { try reader.id(.beacons, $0) }
    }

    @Test func deletedDatabase_isDetectedAtNextTick_withoutLoss() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        try accept(queue, 0..<10)
        let (ids, before) = (try ids(queue, of: 0, 10), queue.generation)
        for suffix in ["", "-wal", "-shm"] { unlink(folder.database + suffix) }
        // Confirmed as stored, into a deleted file.
        for number in 10..<15 { queue.accept(testSighting(number)) }
        try waitUntil("they are") { queue.newest(.beacons) == 15 || queue.generation > before }
        try tick(queue, after: before)
        try accept(queue, 15..<18)
        #expect(try beacons(queue).pending == 18)
        #expect(queue.setAside.count == 1)
        #expect(try queue.losses().isEmpty)
        #expect(try self.ids(queue, of: 1, 10) == ids)
        // The new one is at its path, and the deleted one has freed its space.
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM sightings") ?? 0 >= 3)
        queue.close()

        let again = try folder.queue()
        #expect(try beacons(again).pending == 18)
        again.close()
    }

    /// Deleted without its WAL: a new database must not use that WAL.
    @Test func deletedDatabase_leavesItsJournalToNobody() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        try accept(queue, 0..<10)
        let before = queue.generation
        unlink(folder.database)
        try tick(queue, after: before)
        try accept(queue, 10..<12)
        queue.close()
        let again = try folder.queue()
        #expect(try beacons(again).pending == 12)
        try checkSum(again)
        again.close()
    }

    /// Returns a queue of 17 records whose file was replaced by a backup with the first ten.
    private func replacedByBackup(
        _ folder: TemporaryFolder
    ) throws -> (Queue, generation: Int, leavings: Int) {
        var queue = try folder.queue()
        try accept(queue, 0..<10)
        queue.close()
        let backup = folder.path + "/backup"
        try FileManager.default.copyItem(atPath: folder.database, toPath: backup)
        queue = try folder.queue()
        try accept(queue, 10..<17)
        let before = (queue, queue.generation, queue.leavings)
        #expect(rename(backup, folder.database) == 0)
        return before
    }

    private func checkBothWait(_ queue: Queue) throws {
        try queue.waitUntilSalvaged()
        try accept(queue, 17..<20)
        #expect(queue.setAside.count == 2)
        // The ten of the backup are pending twice, under one id each.
        #expect(try beacons(queue).pending == 30)
        #expect(try ids(queue, of: 1, 10) == ids(queue, of: 2, 10))
        #expect(try queue.losses().isEmpty)
    }

    @Test func olderBackup_isQuarantined_andBothAreUploaded() throws {
        let folder = TemporaryFolder()
        let (queue, before, _) = try replacedByBackup(folder)
        try tick(queue, after: before)
        try checkBothWait(queue)
        queue.close()
    }

    /// A reader that opens the path finds the backup damaged before the tick comes.
    @Test func damageOfTheOtherFile_costsNothingOfTheOpenOne() throws {
        let folder = TemporaryFolder()
        let (queue, before, _) = try replacedByBackup(folder)
        queue.reportDamage("for the test", generation: before)
        try waitUntil("a new database") { queue.generation > before }
        try checkBothWait(queue)
        queue.close()
    }

    /// Queries like a sync: records read through the path must not be attributed to the open file.
    @Test func questionToTheWriter_noticesTheOtherFileFirst() throws {
        let folder = TemporaryFolder()
        let (queue, generation, leavings) = try replacedByBackup(folder)
        let seen = try queue.perform { _ in (queue.leavings, queue.generation) }
        #expect(seen.0 > leavings)
        #expect(seen.1 > generation)
        try checkBothWait(queue)
        queue.close()
    }

    /// There is room for the pending records only.
    @Test func largeDeletedDatabase_isCopiedWithoutUploadedRows() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(at: folder.database) {
            $0.disk = CrampedDisk(limit: 600_000)
        }
        for part in 0..<4 { try accept(queue, part * 10_000..<(part + 1) * 10_000) }
        let range = try #require(queue.pending(.beacons))
        try queue.perform { writer in
            let batch = try #require(try writer.freeze(range, through: 39_990))
            try writer.uploaded(batch)
        }
        let kept = try queue.reader().id(.beacons, 40_000)
        let before = queue.generation
        unlink(folder.database)
        try tick(queue, after: before)
        let path = try #require(queue.setAside.first).path
        #expect(SystemDisk().size(path) < 600_000)
        #expect(try beacons(queue).pending == 10)
        #expect(try queue.reader(of: 1).id(.beacons, 40_000) == kept)
        #expect(try queue.losses().isEmpty)
        try checkSum(queue)
        queue.close()
    }

    @Test func deletedDatabase_thatCannotBeCopied_isEnteredAsLost() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(clock: ManualClock(testStart))
        try accept(queue, 0..<10)
        // A marker cannot be written where a folder is.
        let time = testStart.wall.rfc3339.filter { $0 != "-" && $0 != ":" }.prefix { $0 != "." }
        let aside = folder.database + ".corrupt-\(time)Z"
        #expect(mkdir(aside + CommitMark.suffix, 0o700) == 0)
        let before = queue.generation
        unlink(folder.database)
        try tick(queue, after: before)
        try accept(queue, 10..<13)
        #expect(try beacons(queue).pending == 3)
        try waitUntil("the loss is recorded") { queue.newLosses.isEmpty }
        let loss = try #require(try queue.losses().first)
        #expect(loss.kind == .corrupt)
        #expect(loss.records == 10)
        try checkSum(queue)
        queue.close()
    }

    /// A folder is away for a while: the database is there again when it is.
    @Test func folderThatIsAway_isWaitedFor() throws {
        let parent = TemporaryFolder()
        let folder = parent.path + "/state"
        #expect(mkdir(folder, 0o700) == 0)
        let clock = ManualClock(testStart)
        let queue = try Queue(at: folder + "/queue.sqlite", clock: clock)
        try accept(queue, 0..<10)
        #expect(rename(folder, parent.path + "/away") == 0)
        queue.checkStorage()
        try waitUntil("the board says so") {
            if case .error = queue.storage.state { return true }
            return false
        }
        for number in 10..<15 { queue.accept(testSighting(number)) }
        #expect(rename(parent.path + "/away", folder) == 0)
        clock.advance(by: .seconds(60))
        try waitUntil("they are stored") { (try? beacons(queue).pending) == 15 }
        #expect(queue.setAside.isEmpty)
        #expect(try queue.losses().isEmpty)
        queue.close()
    }
}

/// A disk with limited room for a quarantined database.
private struct CrampedDisk: QueueDisk {
    let system = SystemDisk()
    let limit: Int64

    var vfs: String? { nil }
    func exists(_ path: String) -> Bool { system.exists(path) }
    func size(_ path: String) -> Int64 { system.size(path) }
    func rename(_ path: String, to other: String) throws -> Bool {
        try system.rename(path, to: other)
    }
    func remove(_ path: String) -> Bool { system.remove(path) }
    func identity(_ path: String) -> FileIdentity? { system.identity(path) }
    func names(in folder: String) -> [String] { system.names(in: folder) }
    func read(_ path: String, at place: Int64, count: Int) throws -> [UInt8] {
        try system.read(path, at: place, count: count)
    }
    func write(_ path: String, _ bytes: [UInt8]) throws { try system.write(path, bytes) }
    /// A full file system may report that only at fsync.
    func writeAgain(_ path: String) throws {
        guard !path.contains(".corrupt-") || size(path) <= limit else {
            throw SQLiteError(code: 13, message: "database or disk is full", statement: "")
        }
        try system.writeAgain(path)
    }
    func extend(_ path: String, to bytes: Int64) throws { try system.extend(path, to: bytes) }
    func reserve(_ path: String, bytes: Int64) -> Bool { system.reserve(path, bytes: bytes) }
    func free(_ folder: String) -> Int64? { system.free(folder) }
}
