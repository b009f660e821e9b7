// Maintains the clock map, and prunes entries that no record needs.
package import Host
package import Records
import SQLite

extension Writer {
    /// Stores both clocks at one point in time; `synced` if `source` vouches for the wall clock.
    ///
    /// The first synced entry of a boot dates all records before it. An entry that adds nothing
    /// replaces the previous one, so months take only a few rows.
    package func recordClock(
        _ stamp: Stamp,
        synced: Bool,
        by source: ClockSource = .kernel
    ) throws {
        try begin()
        let (idle, before) = (clockMap.idle, (memory.bootIsSynced, clockMap.correction))
        try insert(
            ClockMap.Entry(
                id: 0,
                boot: boot,
                boottime: stamp.boot.milliseconds,
                wall: stamp.wall.milliseconds,
                synced: synced,
                source: synced ? source : nil
            )
        )
        if synced { memory.bootIsSynced = true }
        if (memory.bootIsSynced, clockMap.correction) != before { try applyMarksInWallTime() }
        // Delete after the insert: a row id that a batch was frozen with must not be reused.
        if let idle, idle.boot == boot {
            try connection.run("DELETE FROM clock_map WHERE id=?", idle.id)
        }
    }

    /// Stores an entry under the next number, which it returns.
    @discardableResult func insert(_ entry: ClockMap.Entry) throws -> Int64 {
        try connection.run(
            "INSERT INTO clock_map(boot, boottime, wall, synced, source) VALUES (?,?,?,?,?)",
            entry.boot,
            entry.boottime,
            entry.wall,
            entry.synced ? 1 : 0,
            entry.source?.rawValue
        )
        var stored = entry
        stored.id = connection.lastInsertedRow
        try requireIntact(
            stored.id > clockMap.newest,
            "entry \(stored.id) of the clock map is not new"
        )
        clockMap.add(stored)
        return stored.id
    }

    /// The best known wall time; time from GNSS does not set the system clock.
    var rightTime: WallTime { clockMap.resolve(clock.stamp(), boot: boot).wall }

    /// Returns whether the clock has been synced during this boot.
    package func clockSyncedThisBoot() -> Bool { memory.bootIsSynced }

    /// Returns the newest point of this boot whose true wall time is known.
    package func clockAnchor() -> ClockMap.Anchor? { clockMap.anchor(of: boot) }

    /// Returns the row of a boot; 0, which has no entries, if this database does not know the boot.
    func boot(named id: String) throws -> Int64 {
        try connection.integer("SELECT id FROM boots WHERE boot_id=?", id) ?? 0
    }

    /// Deletes boots without records or losses, and old clock entries of the oldest needed boot.
    ///
    /// Rows and boots ascend together: the first row of each table gives its oldest boot.
    package func pruneClockMap() throws {
        // Records of an older database are not in the order of these boots.
        guard memory.older.isEmpty else { return }
        let (oldest, moment) = try oldestRecord()
        // The ledger keeps a few times forever: keep only their boots, not all later ones; likewise
        // the boots of effort that is not stored yet.
        let unneeded = """
            NOT IN (SELECT first_boot FROM losses UNION SELECT open_boot FROM losses
            UNION SELECT last_boot FROM losses UNION SELECT id FROM boots, memos
            WHERE name='\(EffortBook.memo)' AND instr(value, boot_id) AND id<\(oldest))
            """
        try begin()
        try connection.run("DELETE FROM clock_map WHERE boot<? AND boot \(unneeded)", oldest)
        var isPruned = connection.changes > 0
        try connection.run("DELETE FROM boots WHERE id<? AND id \(unneeded)", oldest)
        // Records are never out of stamp order by as much as an hour.
        if let anchor = clockMap.anchor(of: oldest, at: moment &- 3_600_000) {
            try connection.run(
                "DELETE FROM clock_map WHERE boot=? AND boottime<? AND id<? AND boot \(unneeded)",
                oldest,
                anchor.boottime,
                clockMap.newest
            )
            isPruned = isPruned || connection.changes > 0
        }
        if isPruned { clockMap = try loadClockMap(connection, through: .max) }
    }

    /// Returns the boot and boot time (ms) of the oldest record; now if there are no records.
    private func oldestRecord() throws -> (boot: Int64, boottime: Int64) {
        var oldest = (boot: boot, boottime: clock.now().milliseconds)
        let tables = streams.kinds.map(\.table) + ["segments", "open_survey"]
        let moments = tables.map { "boot, boottime FROM \($0)" }
        let begins = [
            "start_boot, start_boottime FROM surveys", "from_boot, from_boottime FROM effort",
        ]
        for moment in moments.map({ "\($0) ORDER BY rowid" })
            + begins.map({ "\($0) ORDER BY 1, 2" })
        {
            let row = try connection.prepare("SELECT \(moment) LIMIT 1")
            guard try row.step() else { continue }
            let first = (boot: row.required(0), boottime: row.required(1))
            if first < oldest { oldest = first }
        }
        return oldest
    }
}
