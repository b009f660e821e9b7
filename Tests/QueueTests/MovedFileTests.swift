import Board
import Foundation
import Host
import SQLite
import Support
import Testing

@testable import Queue
@testable import Streams

/// Somebody deletes the database, or puts another in its place, while the gateway runs.
@Suite struct MovedFileTests {
    private func accept(_ queue: Queue, _ numbers: Range<Int>) throws {
        for number in numbers { queue.accept(testSighting(number)) }
        try queue.flushed()
    }

    /// The health timer's tick, and what comes of it.
    private func tick(_ queue: Queue) throws {
        let before = queue.generation
        queue.checkStorage()
        try waitUntil("a new database") { queue.generation > before }
        try salvaged(queue)
    }

    private func beacons(_ queue: Queue) throws -> StreamStatistics {
        try #require(try queue.flushed().statistics().first { $0.stream == .beacons })
    }

    private func ids(_ queue: Queue, of database: Int64, _ count: Int64) throws -> [String] {
        let reader = try queue.reader(of: database)
        return try (1...count).map { try reader.id(.beacons, $0) }
    }

    @Test func deletedDatabase_isNoticedAtTheNextTick_andNothingOfItIsLost() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        try accept(queue, 0..<10)
        let ids = try ids(queue, of: 0, 10)
        for suffix in ["", "-wal", "-shm"] { unlink(folder.database + suffix) }
        // Answered as stored, into a file without a name.
        try accept(queue, 10..<15)
        try tick(queue)
        try accept(queue, 15..<18)
        #expect(try beacons(queue).pending == 18)
        #expect(queue.setAside.count == 1)
        #expect(try queue.losses().isEmpty)
        #expect(try self.ids(queue, of: 1, 10) == ids)
        // The new one is at its path, and the deleted one gave its room back.
        let database = try Connection(path: folder.database, access: .readOnly)
        #expect(try database.integer("SELECT count(*) FROM sightings") == 3)
        queue.close()

        let again = try folder.queue()
        #expect(try beacons(again).pending == 18)
        again.close()
    }

    /// Without its journal deleted: a new database must not take it for its own.
    @Test func deletedDatabase_leavesItsJournalToNobody() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        try accept(queue, 0..<10)
        unlink(folder.database)
        try tick(queue)
        try accept(queue, 10..<12)
        queue.close()
        let again = try folder.queue()
        #expect(try beacons(again).pending == 12)
        try checkSum(folder, again)
        again.close()
    }

    @Test func olderBackupInItsPlace_isSetAside_andBothAreUploaded() throws {
        let folder = TemporaryFolder()
        var queue = try folder.queue()
        try accept(queue, 0..<10)
        queue.close()
        let backup = folder.path + "/backup"
        try FileManager.default.copyItem(atPath: folder.database, toPath: backup)
        queue = try folder.queue()
        try accept(queue, 10..<15)
        #expect(rename(backup, folder.database) == 0)
        try accept(queue, 15..<17)
        try tick(queue)
        try accept(queue, 17..<20)
        #expect(queue.setAside.count == 2)
        // The ten of the backup wait twice, under one id each.
        #expect(try beacons(queue).pending == 30)
        #expect(try ids(queue, of: 1, 10) == ids(queue, of: 2, 10))
        #expect(try queue.losses().isEmpty)
        queue.close()
    }

    @Test func deletedDatabase_thatCannotBeCopied_isEnteredAsLost() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(clock: ManualClock(testStart))
        try accept(queue, 0..<10)
        // No mark can be written where a folder is.
        let time = testStart.wall.rfc3339.filter { $0 != "-" && $0 != ":" }.prefix { $0 != "." }
        let aside = folder.database + ".corrupt-\(time)Z"
        #expect(mkdir(aside + CommitMark.suffix, 0o700) == 0)
        unlink(folder.database)
        try tick(queue)
        try accept(queue, 10..<13)
        #expect(try beacons(queue).pending == 3)
        try waitUntil("the loss is entered") { queue.newLosses.isEmpty }
        let loss = try #require(try queue.losses().first)
        #expect(loss.kind == .corrupt)
        #expect(loss.records == 10)
        try checkSum(folder, queue)
        queue.close()
    }

    /// A folder that is away for a while: the database is there again when it is.
    @Test func folderThatIsAway_isWaitedFor() throws {
        let parent = TemporaryFolder()
        let folder = parent.path + "/state"
        #expect(mkdir(folder, 0o700) == 0)
        let clock = ManualClock(testStart)
        let settings = QueueSettings(
            path: folder + "/queue.sqlite",
            bootID: "boot",
            clock: clock,
            appVersion: "test"
        )
        let queue = try Queue(settings: settings)
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
