import CSQLite
import SimulatedDisk
import Testing

/// A power cut keeps everything synced, and of the rest what chance decides.
@Suite struct PowerTests {
    @Test func committed_survivesEveryCrash() {
        var commits = 0
        for seed in 0..<300 as Range<UInt64> {
            let history = History(seed: seed)
            let wrong = history.run(lives: 4)
            #expect(wrong == nil, "seed \(seed)")
            commits += history.commits
        }
        // The power must not go before there is anything to lose.
        #expect(commits > 3000)
    }

    @Test func committed_survivesFaultsBeforeTheCrash() {
        var failures = 0
        for seed in 0..<300 as Range<UInt64> {
            let history = History(seed: seed)
            history.hasFaults = true
            let wrong = history.run(lives: 4)
            #expect(wrong == nil, "seed \(seed)")
            failures += history.failures
        }
        #expect(failures > 1500)
    }

    @Test func lyingCard_isFoundOut() {
        let found = (0..<50 as Range<UInt64>).filter { seed in
            let history = History(seed: seed)
            history.disk.dropsSyncs = true
            return history.run(lives: 4) != nil
        }
        #expect(found.count > 25)
    }

    @Test func sameSeed_sameOperationsAndBytes() throws {
        let histories = (0..<2).map { _ in
            SimulatedDisk.seedSQLite(7)
            let history = History(seed: 42)
            #expect(history.run(lives: 5) == nil)
            return history
        }
        #expect(histories[0].log == histories[1].log)
        #expect(histories[0].log.count > 500)
        let files = histories.map { $0.disk.files }
        #expect(files[0] == files[1])
        for file in files[0] {
            let bytes = try histories.map { try Self.unsalted(file, $0.disk) }
            // Not in the macro, which would print every byte of both.
            let isSame = bytes[0] == bytes[1]
            #expect(isSame, "\(file)")
        }
        #expect(histories[0].disk.counters == histories[1].disk.counters)
        let other = History(seed: 43)
        _ = other.run(lives: 5)
        #expect(other.log != histories[0].log)
    }

    /// A file; of a journal without salts and checksums, for tests beside this one take from SQLite's random
    /// numbers, too (sqlite.org/walformat.html, section 2).
    private static func unsalted(_ file: String, _ disk: SimulatedDisk) throws -> [UInt8] {
        var bytes = try #require(disk.contents(file))
        guard file.hasSuffix("-wal") else { return bytes }
        let frames = stride(from: 32, to: bytes.count, by: 24 + 1024).map { ($0 + 8)..<($0 + 24) }
        for place in [16..<32] + frames {
            for index in place where index < bytes.count { bytes[index] = 0 }
        }
        return bytes
    }

    @Test func deadConnections_changeNothing() throws {
        let disk = SimulatedDisk(seed: 1)
        var dead: Database? = try Database.writer(disk)
        try dead?.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        try dead?.execute("BEGIN; INSERT INTO t VALUES (2)")
        disk.kill()
        let living = try Database.writer(disk)
        #expect(try living.integer("SELECT count(*) FROM t") == 1)
        let before = disk.files.map { disk.contents($0) }
        #expect(dead?.code("INSERT INTO t VALUES (3)") == SQLITE_OK, "within the cache of the dead")
        #expect(dead.map { $0.code("COMMIT") & 0xFF } == SQLITE_IOERR)
        #expect(dead.map { $0.code("SELECT count(*) FROM t") & 0xFF } == SQLITE_IOERR)
        dead = nil
        #expect(disk.files.map { disk.contents($0) } == before)
        // Its locks are gone as well.
        try living.execute("INSERT INTO t VALUES (4)")
        #expect(try living.integer("SELECT count(*) FROM t") == 2)
        #expect(try living.row("PRAGMA integrity_check") == ["ok"])
    }

    @Test func deadConnections_outliveTheirDisk() throws {
        var disk: SimulatedDisk? = SimulatedDisk(seed: 1)
        let dead = try Database.writer(try #require(disk))
        try dead.execute("CREATE TABLE t(a)")
        disk = nil
        #expect(dead.code("INSERT INTO t VALUES (1)") & 0xFF == SQLITE_IOERR)
    }

    @Test func kill_keepsWhatIsNotSynced() throws {
        let disk = SimulatedDisk(seed: 1)
        try disk.write("/a", at: 0, [1, 2, 3])
        disk.kill()
        #expect(disk.contents("/a") == [1, 2, 3])
        #expect(disk.unsyncedBytes == 3)
        var chance = Chance(state: 1)
        disk.crash(using: &chance, .losingAll)
        #expect(disk.files == [])
        #expect(disk.usedBytes == 0)
    }

    @Test func powerCut_tearsWritesBySector() throws {
        let old = [UInt8](repeating: 1, count: 4096)
        let new = [UInt8](repeating: 2, count: 4096)
        var mixtures: Set<[UInt8]> = []
        for seed in 0..<60 as Range<UInt64> {
            let disk = SimulatedDisk(seed: seed)
            try disk.write("/a", at: 0, old)
            try disk.sync("/a")
            try disk.write("/a", at: 0, new)
            var chance = Chance(state: seed)
            disk.crash(using: &chance)
            let left = try #require(disk.contents("/a"))
            try #require(left.count == 4096)
            let sectors = stride(from: 0, to: 4096, by: 512).map { Set(left[$0..<($0 + 512)]) }
            #expect(sectors.allSatisfy { $0.count == 1 })
            mixtures.insert(sectors.flatMap { $0 })
        }
        #expect(mixtures.contains([UInt8](repeating: 1, count: 8)))
        #expect(mixtures.contains([UInt8](repeating: 2, count: 8)))
        #expect(mixtures.count > 10)
    }

    @Test func sync_makesSizesDurable() throws {
        let disk = SimulatedDisk(seed: 1)
        try disk.write("/a", at: 0, [1, 2, 3, 4])
        try disk.sync("/a")
        try disk.truncate("/a", to: 1)
        try disk.truncate("/a", to: 3)
        try disk.sync("/a")
        try disk.truncate("/a", to: 0)
        var chance = Chance(state: 1)
        disk.crash(using: &chance, .losingAll)
        #expect(disk.contents("/a") == [1, 0, 0])
    }

    @Test func powerCut_keepsNamesInTheirOrder() throws {
        var survivors: Set<[String]> = []
        for seed in 0..<60 as Range<UInt64> {
            let disk = SimulatedDisk(seed: seed)
            try disk.write("/old", at: 0, [1])
            try disk.sync("/old")
            try disk.rename("/old", to: "/new")
            try disk.write("/other", at: 0, [2])
            try disk.remove("/new")
            var chance = Chance(state: seed)
            disk.crash(using: &chance)
            survivors.insert(disk.files)
        }
        #expect(survivors == [["/old"], ["/new"], ["/new", "/other"], ["/other"]])
    }

    @Test func syncOfOneFile_makesEarlierNamesDurable() throws {
        let disk = SimulatedDisk(seed: 1)
        try disk.write("/a", at: 0, [1])
        try disk.rename("/a", to: "/b")
        try disk.write("/c", at: 0, [3])
        try disk.sync("/c")
        var chance = Chance(state: 1)
        disk.crash(using: &chance, .losingAll)
        #expect(disk.files == ["/b", "/c"])
        #expect(disk.contents("/b") == [])
        #expect(disk.contents("/c") == [3])
    }
}
