import CSQLite
import SimulatedDisk
import Testing

/// A disk on which nothing goes wrong, and its copies.
@Suite struct DiskTests {
    private static func table(_ disk: SimulatedDisk, rows: Int = 0) throws -> Database {
        let database = try Database.writer(disk)
        try database.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB)")
        for row in 0..<rows { try database.execute("INSERT INTO t VALUES (\(row), zeroblob(500))") }
        return database
    }

    @Test func reader_keepsItsSnapshotWhileTheWriterWrites() throws {
        let disk = SimulatedDisk(seed: 1)
        let writer = try Self.table(disk, rows: 10)
        let reader = try Database(disk, readOnly: true)
        try reader.execute("BEGIN")
        #expect(try reader.integer("SELECT count(*) FROM t") == 10)
        try writer.execute("INSERT INTO t VALUES (10, NULL)")
        #expect(try reader.integer("SELECT count(*) FROM t") == 10)
        // The journal cannot be emptied under a reader: busy, and said at once.
        #expect(try writer.row("PRAGMA wal_checkpoint(TRUNCATE)").first == "1")
        try reader.execute("COMMIT")
        #expect(try reader.integer("SELECT count(*) FROM t") == 11)
        #expect(try writer.row("PRAGMA wal_checkpoint(TRUNCATE)") == ["0", "0", "0"])
        #expect(disk.size(Database.path + "-wal") == 0)
        #expect(try reader.row("PRAGMA integrity_check") == ["ok"])
        #expect(try writer.row("PRAGMA journal_mode") == ["wal"])
        #expect(disk.names(in: "/data") == ["queue.db", "queue.db-wal"])
    }

    /// A connection to what is shown sees each disk as it is, and can change none.
    @Test func view_showsOneDiskAfterAnother() throws {
        let (first, second) = (SimulatedDisk(seed: 1), SimulatedDisk(seed: 2))
        let writer = try Self.table(first, rows: 10)
        let other = try Self.table(second, rows: 3)
        let view = SimulatedDisk(seed: 3)
        let database = try view.show(first) { try Database(view) }
        let count = "SELECT count(*) FROM t"
        for round in 1...5 {
            #expect(try view.show(first) { try database.integer(count) } == Int64(9 + round))
            #expect(try view.show(second) { try database.integer(count) } == 3)
            #expect(view.show(first) { database.code("DELETE FROM t") } != SQLITE_OK)
            try writer.execute("INSERT INTO t VALUES (\(100 + round), NULL)")
            // The same number of rows, elsewhere, with the journal empty on both.
            try writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            try other.execute("UPDATE t SET a=a+10; PRAGMA wal_checkpoint(TRUNCATE)")
            #expect(
                try view.show(second) { try database.integer("SELECT min(a) FROM t") }
                    == Int64(round * 10)
            )
        }
        #expect(try writer.row("PRAGMA integrity_check") == ["ok"])
    }

    @Test func secondWriter_isBusy() throws {
        let disk = SimulatedDisk(seed: 1)
        let first = try Self.table(disk)
        let second = try Database(disk)
        try first.execute("BEGIN IMMEDIATE")
        #expect(second.code("BEGIN IMMEDIATE") == SQLITE_BUSY)
        #expect(second.code("PRAGMA busy_timeout=5000; BEGIN IMMEDIATE") == SQLITE_BUSY)
        try first.execute("COMMIT")
        try second.execute("BEGIN IMMEDIATE; COMMIT")
    }

    @Test func rollbackJournal_works() throws {
        let disk = SimulatedDisk(seed: 1)
        let first = try Database(disk)
        let second = try Database(disk)
        try first.execute("CREATE TABLE t(a)")
        try first.execute("BEGIN; INSERT INTO t VALUES (1)")
        #expect(second.code("BEGIN IMMEDIATE") == SQLITE_BUSY)
        #expect(disk.exists(Database.path + "-journal"))
        try second.execute("BEGIN")
        #expect(try second.integer("SELECT count(*) FROM t") == 0)
        #expect(first.code("COMMIT") == SQLITE_BUSY, "a reader is there")
        try second.execute("COMMIT")
        #expect(
            second.code("SELECT * FROM t") == SQLITE_BUSY,
            "the writer waits for readers to end"
        )
        try first.execute("COMMIT")
        #expect(try second.integer("SELECT count(*) FROM t") == 1)
        #expect(!disk.exists(Database.path + "-journal"))
    }

    @Test func close_removesTheJournal() throws {
        let disk = SimulatedDisk(seed: 1)
        _ = try Self.table(disk, rows: 3)
        #expect(disk.files == [Database.path])
    }

    @Test func clock_isSet() throws {
        let disk = SimulatedDisk(seed: 1)
        disk.wallMilliseconds = 1_795_235_407_000
        let database = try Database(disk)
        #expect(try database.row("SELECT datetime('now')") == ["2026-11-21 04:30:07"])
    }

    @Test func renamedFile_staysWithItsHandle() throws {
        let disk = SimulatedDisk(seed: 1)
        let old = try Self.table(disk, rows: 5)
        try disk.rename(Database.path + "-wal", to: "/data/aside.db-wal")
        try disk.rename(Database.path, to: "/data/aside.db")
        let new = try Self.table(disk, rows: 2)
        try old.execute("INSERT INTO t VALUES (5, NULL)")
        #expect(try old.integer("SELECT count(*) FROM t") == 6)
        #expect(try new.integer("SELECT count(*) FROM t") == 2)
        let aside = try Database(disk, "/data/aside.db")
        #expect(try aside.integer("SELECT count(*) FROM t") == 6)
        #expect(try aside.row("PRAGMA integrity_check") == ["ok"])
    }

    @Test func removedFile_livesAsLongAsItsHandle() throws {
        let disk = SimulatedDisk(seed: 1)
        disk.capacity = 1 << 20
        var database: Database? = try Self.table(disk, rows: 5)
        for file in disk.files { try disk.remove(file) }
        #expect(disk.files == [])
        #expect(disk.usedBytes > 0)
        #expect(try database?.integer("SELECT count(*) FROM t") == 5)
        database = nil
        #expect(disk.usedBytes == 0)
    }

    // MARK: Copies

    @Test func copy_goesItsOwnWay() throws {
        let disk = SimulatedDisk(seed: 1)
        let database = try Self.table(disk, rows: 5)
        try disk.write("/unsynced", at: 0, [1])
        let copy = disk.copy(seed: 2)
        #expect(copy.files == disk.files)
        #expect(copy.files.map { copy.contents($0) } == disk.files.map { disk.contents($0) })
        #expect(copy.vfs != disk.vfs)
        #expect(copy.unsyncedBytes == disk.unsyncedBytes)
        try database.execute("INSERT INTO t VALUES (5, NULL)")
        let other = try Database.writer(copy)
        #expect(try other.integer("SELECT count(*) FROM t") == 5)
        try other.execute("DELETE FROM t")
        #expect(try database.integer("SELECT count(*) FROM t") == 6)
        var chance = Chance(state: 1)
        copy.crash(using: &chance, .losingAll)
        #expect(try Database(copy).integer("SELECT count(*) FROM t") == 0)
        #expect(disk.contents("/unsynced") == [1])
    }

    @Test func restore_rollsBack() throws {
        let disk = SimulatedDisk(seed: 1)
        let database = try Self.table(disk, rows: 5)
        let snapshot = disk.snapshot()
        try database.execute("DELETE FROM t; INSERT INTO t VALUES (77, NULL)")
        try disk.write("/later", at: 0, [1])
        for _ in 0..<2 {
            disk.restore(snapshot)
            #expect(database.code("SELECT * FROM t") & 0xFF == SQLITE_IOERR)
            #expect(!disk.exists("/later"))
            let again = try Database.writer(disk)
            #expect(try again.integer("SELECT max(a) FROM t") == 4)
            try again.execute("DELETE FROM t")
        }
    }

    // MARK: Plain files

    @Test func plainFiles_areReadWrittenCutAndGrown() throws {
        let disk = SimulatedDisk(seed: 1)
        try disk.write("/data/a", at: 2, [3, 4])
        #expect(disk.contents("/data/a") == [0, 0, 3, 4])
        try disk.truncate("/data/a", to: 3)
        try disk.truncate("/data/a", to: 5)
        #expect(try disk.read("/data/a", at: 1, count: 100) == [0, 3, 0, 0])
        #expect(try disk.read("/data/a", at: 9, count: 1) == [])
        try disk.write("/data/b/c", at: 0, [])
        #expect(disk.names(in: "/data") == ["a"])
        #expect(disk.size("/data/b/c") == 0)
        #expect(disk.size("/nothing") == nil)
        #expect(throws: DiskError(code: 2)) { try disk.remove("/nothing") }
        #expect(throws: DiskError(code: 2)) { try disk.rename("/nothing", to: "/b") }
        try disk.rename("/data/a", to: "/data/b/c")
        #expect(disk.files == ["/data/b/c"])
        #expect(disk.size("/data/b/c") == 5)
    }

    @Test func reserve_takesRoom_holesDoNot() throws {
        let disk = SimulatedDisk(seed: 1)
        disk.capacity = 10_240
        try disk.allocate("/reserve", bytes: 8192)
        #expect(disk.freeBytes == 2048)
        try disk.write("/hole", at: 0, [])
        try disk.truncate("/hole", to: 50_000)
        #expect(disk.freeBytes == 2048)
        #expect(throws: DiskError(code: 28)) { try disk.allocate("/more", bytes: 4096) }
        #expect(disk.size("/more") == 0)
        try disk.remove("/reserve")
        try disk.allocate("/more", bytes: 4096)
        #expect(disk.freeBytes == 10_240 - 4096)
    }
}
