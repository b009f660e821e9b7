// Quarantined databases and a second fault: in the live one, in their folder, on the disk.
import Foundation
import Host
import SQLite
import StatusBoard
import Support
import Synchronization
import Testing

@testable import Queue
import QueueSupport
@testable import Records

@Suite struct OlderDatabaseFaultsTests {
    /// Makes a quarantined database with ten sightings, none adopted yet; driven by the test.
    private func queue(
        _ folder: TemporaryFolder,
        limits: StorageLimits = StorageLimits(),
        free: (@Sendable () -> Int64)? = nil
    ) throws -> Queue {
        var settings = QueueSettings(at: folder.database)
        settings.isTurnedByHand = true
        settings.limits = limits
        if let free { settings.freeSpace = { _ in free() } }
        let queue = try Queue(settings: settings)
        for number in 0..<10 { queue.accept(testSighting(number)) }
        try queue.flushed()
        return queue
    }

    private func replace(_ queue: Queue) {
        queue.reportDamage("for the test", generation: queue.generation)
        queue.turn()
    }

    /// Runs some steps of the maintenance; it does not end by itself if something fails.
    private func maintain(_ queue: Queue, steps: Int = 40) {
        for _ in 0..<steps { _ = queue.turnMaintenance() }
    }

    /// An older version quarantined it: its batches have no form.
    @Test func batchesOfAnOlderVersion_keepTheirKeys() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        let frozen = try queue.perform { writer in
            try writer.pending(.beacons).flatMap { try writer.freeze($0, through: 4) }
        }
        let batch = try #require(frozen)
        try queue.flushed()
        replace(queue)
        let path = try #require(queue.setAside.first?.path)
        do {
            let file = try Connection(path: path, access: .readWrite)
            try file.execute("ALTER TABLE batches DROP COLUMN form")
            try file.execute("PRAGMA user_version=1")
        }
        maintain(queue)
        #expect(try queue.nextReady(.beacons)?.key == batch.key)
        #expect(queue.pending(.beacons)?.first == 5)
        queue.close()
    }

    private func lost(_ queue: Queue) throws -> Int {
        try queue.losses().filter { $0.stream == .beacons }.reduce(0) { $0 + $1.records }
    }

    private func spoil(_ table: String, _ folder: TemporaryFolder) throws {
        let live = try Connection(path: folder.database, access: .readWrite)
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name='\(table)'"
        let page = try #require(try live.integer(sql))
        let file = try #require(FileHandle(forUpdatingAtPath: folder.database))
        try file.seek(toOffset: UInt64((page - 1) * 1024))
        try file.write(contentsOf: Data(repeating: 0xA5, count: 1024))
        try file.close()
    }

    /// The live database is damaged too: that does not affect the older one, whose records are
    /// intact.
    @Test(arguments: ["boots", "databases"])
    func damageOfTheLiveOne_isNotTakenForThatOfTheOlder(table: String) throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        replace(queue)
        #expect(queue.turnMaintenance())
        try queue.perform { try $0.checkpoint(waiting: true) }
        try spoil(table, folder)
        maintain(queue)
        queue.turn()
        maintain(queue)
        #expect(try lost(queue) == 0)
        #expect(queue.generation == 3)
        #expect(queue.statistics().first { $0.stream == .beacons }?.pending == 10)
        queue.close()
    }

    /// The live one has reached its size limit: discarding pending records of the older one would
    /// not make room in it.
    ///
    /// On a full disk it goes if its file makes up for what is missing.
    @Test func sizeLimit_sparesOlderDatabase_butAFullDiskMayNot() throws {
        let folder = TemporaryFolder()
        let isFull = Mutex(false)
        let free: @Sendable () -> Int64 = { isFull.withLock { $0 ? 0 : 1_000_000_000 } }
        let queue = try queue(folder, limits: StorageLimits(maxSize: 4_000_000), free: free)
        replace(queue)
        maintain(queue)
        for round in 0..<20 {
            record(queue, segments: 30, bytes: 20_000, from: round * 30)
            queue.turn()
        }
        #expect(try queue.losses().map(\.stream) == [.audio])
        #expect(queue.pending(.beacons)?.database == 1)
        isFull.withLock { $0 = true }
        for _ in 0..<20 {
            queue.checkStorage()
            queue.turn()
        }
        #expect(try lost(queue) == 0)
        let room = try #require(queue.storage.state.value?.room.free)
        let gain = FileSpace.size(try #require(queue.setAside.first).path)
        let need = room + gain / 2
        queue.limit(StorageLimits(maxSize: 4_000_000, warnFree: need, criticalFree: need))
        for _ in 0..<20 {
            queue.checkStorage()
            queue.turn()
        }
        #expect(try lost(queue) == 10)
        queue.close()
    }

    /// Its folder is temporarily elsewhere (moved, not mounted): the file was not deleted.
    @Test func folderThatIsAwayForAMoment_costsNothing() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        replace(queue)
        maintain(queue)
        try FileManager.default.moveItem(atPath: folder.path, toPath: folder.path + "-away")
        #expect(try queue.perform { try $0.giveUpIfGone(1) } == false)
        // The free space is unknown now: that is not a full disk.
        queue.checkStorage()
        queue.turn()
        try FileManager.default.moveItem(atPath: folder.path + "-away", toPath: folder.path)
        #expect(try lost(queue) == 0)
        #expect(queue.pending(.beacons)?.database == 1)
        queue.close()
    }

    /// A person's copy beside it: neither its records nor its loss counters are counted again.
    @Test func copyBesideIt_isNoDatabaseThatWasSetAside() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        queue.record(Loss(.missed, .beacons, records: 3, from: testStart, to: testStart))
        try queue.flushed()
        replace(queue)
        maintain(queue)
        let path = try #require(queue.setAside.first?.path)
        for copy in [".bak", "-copy"] {
            try FileManager.default.copyItem(atPath: path, toPath: path + copy)
            try FileManager.default.copyItem(atPath: path + "-wal", toPath: path + copy + "-wal")
        }
        queue.checkSetAside()
        maintain(queue)
        #expect(queue.setAside.map(\.path) == [path])
        #expect(try lost(queue) == 3)
        #expect(queue.statistics().first { $0.stream == .beacons }?.pending == 10)
        queue.close()
    }

    /// A frozen batch of it is sent only when its records were read; until then the sync is not
    /// done.
    @Test func batchOfADatabaseThatIsNotReadYet_waits() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        let range = try #require(queue.pending(.beacons))
        _ = try queue.perform { try $0.freeze(range, through: 10) }
        replace(queue)
        #expect(queue.turnMaintenance())
        #expect(try queue.nextReady(.beacons) == nil)
        #expect(try queue.unsent(.beacons, through: 0) == 10)
        maintain(queue)
        #expect(try queue.nextReady(.beacons) != nil)
        queue.close()
    }

    /// A clock note of the third database precedes those of the second, by which a batch was dated.
    @Test func batchOfFirstDatabase_neverChangesDatesUnderItsKey() throws {
        let folder = TemporaryFolder()
        let queue = try queue(folder)
        replace(queue)
        maintain(queue)
        try queue.perform { try $0.recordClock(testStart, synced: false) }
        let range = try #require(queue.pending(.beacons))
        let batch = try #require(try queue.perform { try $0.freeze(range, through: 10) })
        func date(_ batch: Batch) throws -> ClockQuality {
            try queue.reader(of: batch.database).dates(through: batch.clockMap)
                .resolve(testStart, boot: 1).quality
        }
        #expect(batch.clockMap == 1)
        #expect(try date(batch) == .unsynced)
        replace(queue)
        try queue.perform { try $0.recordClock(testStart, synced: true) }
        maintain(queue)
        if let again = try queue.nextReady(.beacons), again.key == batch.key {
            #expect(try date(again) == .unsynced)
        } else {
            #expect(queue.pending(.beacons)?.first == 1)
        }
        #expect(queue.statistics().first { $0.stream == .beacons }?.pending == 10)
        queue.close()
    }
}

/// The queue's operations on files outside SQLite.
@Suite struct QueueFileTests {
    /// Closing a file drops this process's SQLite locks on it (fcntl(2)).
    ///
    /// Another program that closes the database last would then delete the WAL that is in use.
    @Test func databaseThatIsOpenedAnew_keepsItsLock() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(at: folder.database) { $0.isTurnedByHand = true }
        let loop = try #require(queue.hand?.loop)
        #expect(isLocked(folder.database))
        loop.reopen()
        #expect(queue.generation == 2)
        #expect(isLocked(folder.database))
        loop.end()
    }

    /// A database must be quarantined at the start, but the disk does not rename: records wait as
    /// usual.
    @Test func startOnADiskThatDoesNotRename_waitsForIt() throws {
        let folder = TemporaryFolder()
        try Data().write(to: URL(fileURLWithPath: folder.database))
        var settings = QueueSettings(at: folder.database)
        let disk = StubbornDisk()
        settings.disk = disk
        let queue = try Queue(settings: settings)
        queue.accept(testSighting(0))
        disk.refuses.update { $0 = false }
        try waitUntil("a database") { queue.generation == 1 }
        #expect(try queue.flushed().newest(.beacons) == 1)
        queue.close()
    }

    /// The power failed between the renaming of a database and of its WAL, and the folder cannot be
    /// listed at the next start.
    ///
    /// A new database would delete the WAL, which holds all ten records.
    @Test func startInAFolderThatCannotBeListed_keepsTheJournal() throws {
        let (folder, later) = (TemporaryFolder(), TemporaryFolder())
        let first = try folder.queue()
        for number in 0..<10 { first.accept(testSighting(number)) }
        try first.flushed()
        let aside = later.database + ".corrupt-20261122T000000Z"
        try FileManager.default.copyItem(atPath: folder.database, toPath: aside)
        let journals = (folder.database + "-wal", later.database + "-wal")
        try FileManager.default.copyItem(atPath: journals.0, toPath: journals.1)
        first.close()
        var settings = QueueSettings(at: later.database)
        let disk = StubbornDisk()
        settings.disk = disk
        let queue = try Queue(settings: settings)
        disk.refuses.update { $0 = false }
        try waitUntil("a database") { queue.generation == 1 }
        try queue.waitUntilSalvaged()
        #expect(queue.statistics().first { $0.stream == .beacons }?.pending == 10)
        queue.close()
    }

    private func isLocked(_ path: String) -> Bool {
        let number = (try? FileManager.default.attributesOfItem(atPath: path))?[.systemFileNumber]
        let inode = (number as? Int).map { ":\($0)" } ?? "?"
        let locks = SmallText.read("/proc/locks", limit: 1 << 20) ?? ""
        return locks.split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            return words.count >= 8 && words[1] == "POSIX" && words[5].hasSuffix(inode)
                && words[4] == "\(ProcessInfo.processInfo.processIdentifier)"
        }
    }
}

/// A disk that cannot rename or list files for a while.
private struct StubbornDisk: QueueDisk {
    let system = SystemDisk()
    let refuses = Locked(true)

    var vfs: String? { nil }
    func exists(_ path: String) -> Bool { system.exists(path) }
    func size(_ path: String) -> Int64 { system.size(path) }
    func rename(_ path: String, to other: String) throws -> Bool {
        guard !refuses.value else { throw SystemError("rename", on: path, code: 5) }
        return try system.rename(path, to: other)
    }
    func remove(_ path: String) -> Bool { system.remove(path) }
    func names(in folder: String) -> [String] {
        refuses.value ? [] : system.names(in: folder)
    }
    func read(_ path: String, at place: Int64, count: Int) throws -> [UInt8] {
        try system.read(path, at: place, count: count)
    }
    func write(_ path: String, _ bytes: [UInt8]) throws { try system.write(path, bytes) }
    func writeAgain(_ path: String) throws { try system.writeAgain(path) }
    func extend(_ path: String, to bytes: Int64) throws { try system.extend(path, to: bytes) }
    func reserve(_ path: String, bytes: Int64) -> Bool { system.reserve(path, bytes: bytes) }
    func free(_ folder: String) -> Int64? { system.free(folder) }
}
