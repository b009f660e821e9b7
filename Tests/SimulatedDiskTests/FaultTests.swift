import CSQLite
import SimulatedDisk
import Testing

/// Faults give the codes that the unix VFS gives, and work goes on when they are over.
@Suite struct FaultTests {
    private let disk = SimulatedDisk(seed: 1)
    private let database: Database

    init() throws {
        database = try Database.writer(disk)
        try database.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB)")
    }

    private func insert() -> Int32 {
        database.code("INSERT INTO t(b) VALUES (zeroblob(900))") & 0xFF
    }

    private func expectRows(_ rows: Int64) throws {
        #expect(try database.integer("SELECT count(*) FROM t") == rows)
        #expect(try database.row("PRAGMA integrity_check") == ["ok"])
    }

    @Test func fullDisk_saysFull() throws {
        disk.capacity = disk.usedBytes + 5000
        var rows: Int64 = 0
        while insert() == SQLITE_OK { rows += 1 }
        #expect((1...4).contains(rows))
        #expect(insert() == SQLITE_FULL)
        #expect(disk.usedBytes <= disk.capacity ?? 0)
        #expect(disk.freeBytes < 2048)
        disk.capacity = nil
        #expect(insert() == SQLITE_OK)
        try expectRows(rows + 1)
    }

    @Test func failedWrites_areErrorsOfInput() throws {
        disk.fail(.writes)
        #expect(insert() == SQLITE_IOERR)
        #expect(insert() == SQLITE_IOERR)
        disk.clearFaults()
        #expect(insert() == SQLITE_OK)
        try expectRows(1)
    }

    @Test func failedSync_isReported_andWorkContinues() throws {
        disk.fail(.syncs, times: 1)
        #expect(database.code("INSERT INTO t(b) VALUES (1)") == SQLITE_IOERR | (4 << 8))
        #expect(insert() == SQLITE_OK)
        var chance = Chance(state: 3)
        disk.crash(using: &chance)
        let again = try Database.writer(disk)
        #expect(try again.integer("SELECT count(*) FROM t") == 1)
    }

    @Test func failedSync_forgets() throws {
        var isLost = false
        for seed in 0..<20 as Range<UInt64> {
            let disk = SimulatedDisk(seed: seed)
            try disk.write("/a", at: 0, [1])
            try disk.sync("/a")
            try disk.write("/a", at: 0, [2])
            disk.fail(.syncs, times: 1)
            #expect(throws: DiskError(code: 5)) { try disk.sync("/a") }
            try disk.sync("/a")
            #expect(disk.contents("/a") == [2])
            var chance = Chance(state: seed)
            disk.crash(using: &chance, .losingAll)
            if disk.contents("/a") == [1] { isLost = true }
        }
        #expect(isLost)
    }

    @Test func failedReads_areErrorsOfInput() throws {
        for _ in 0..<20 { _ = insert() }
        let reader = try Database(disk, readOnly: true)
        disk.fail(.reads, after: 2, times: 1)
        #expect(reader.code("SELECT sum(length(b)) FROM t") & 0xFF == SQLITE_IOERR)
        #expect(try reader.integer("SELECT count(*) FROM t") == 20)
    }

    @Test func kthOperation_failsOnce() throws {
        try disk.write("/a", at: 0, [1])
        disk.fail(.all, after: 2, times: 1)
        try disk.sync("/a")
        _ = try disk.read("/a", at: 0, count: 1)
        #expect(throws: DiskError(code: 5)) { try disk.remove("/a") }
        try disk.remove("/a")
    }

    @Test func readOnly_failsWritesAndOpensForReading() throws {
        #expect(insert() == SQLITE_OK)
        disk.isReadOnly = true
        #expect(database.code("INSERT INTO t(b) VALUES (1)") == SQLITE_IOERR | (3 << 8))
        #expect(throws: DiskError(code: 30)) { try disk.remove(Database.path) }
        let second = try Database(disk)
        #expect(try second.integer("SELECT count(*) FROM t") == 1)
        #expect(second.code("INSERT INTO t(b) VALUES (1)") & 0xFF == SQLITE_READONLY)
        #expect(throws: SQLFailure(code: SQLITE_CANTOPEN)) { try Database(disk, "/data/new.db") }
        disk.isReadOnly = false
        #expect(insert() == SQLITE_OK)
        try expectRows(2)
    }

    @Test func readOnlyAfterACrash_cannotMakeTheIndex() throws {
        #expect(insert() == SQLITE_OK)
        disk.kill()
        disk.isReadOnly = true
        let second = try Database(disk)
        #expect(second.code("SELECT * FROM t") & 0xFF == SQLITE_CANTOPEN)
    }

    @Test func damage_isSeenAndStays() throws {
        for _ in 0..<20 { _ = insert() }
        _ = try database.row("PRAGMA wal_checkpoint(TRUNCATE)")
        // A journal whose end is not synced comes back, and would mend the damage.
        try disk.sync(Database.path + "-wal")
        disk.kill()
        let size = try #require(disk.size(Database.path))
        try disk.damage(Database.path, at: size - 2048, with: [UInt8](repeating: 0xAA, count: 1024))
        var chance = Chance(state: 1)
        disk.crash(using: &chance, .losingAll)
        let check = try? Database(disk).row("PRAGMA integrity_check")
        #expect(check != ["ok"])
        try disk.damage(Database.path, cutTo: 3000)
        #expect(try Database(disk).code("SELECT * FROM t") & 0xFF == SQLITE_CORRUPT)
        try disk.damage(Database.path, cutTo: 0)
        #expect(disk.size(Database.path) == 0)
        try disk.damage(removing: Database.path)
        #expect(!disk.exists(Database.path))
    }
}
