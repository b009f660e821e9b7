// The writer's part for the clock: noting both clocks, and forgetting what no record needs.
package import Host
package import Records
import SQLite

extension Writer {
    /// Notes both clocks of a moment of this boot; `synced` if `source` vouches for the wall clock then.
    ///
    /// The first synced note of a boot dates all that came before it. A note that tells nothing new takes
    /// the place of the one before it, so months of them are a few rows.
    package func noteClock(
        _ stamp: Stamp,
        synced: Bool,
        by source: ClockSource = .kernel
    ) throws {
        try begin()
        let idle = clockMap.idle
        let insert = try connection.prepare(
            "INSERT INTO clock_map(boot, boottime, wall, synced, source) VALUES (?,?,?,?,?)"
        )
        try insert.bind(boot, at: 1)
        try insert.bind(stamp.boot.milliseconds, at: 2)
        try insert.bind(stamp.wall.milliseconds, at: 3)
        try insert.bind(Int64(synced ? 1 : 0), at: 4)
        if synced { try insert.bind(source.rawValue, at: 5) }
        try insert.run()
        clockMap.add(
            ClockMap.Entry(
                id: connection.lastInsertedRow,
                boot: boot,
                boottime: stamp.boot.milliseconds,
                wall: stamp.wall.milliseconds,
                synced: synced,
                source: synced ? source : nil
            )
        )
        if synced { memory.bootIsSynced = true }
        // After the insert, never before: a row id that a batch was frozen with must not come again.
        if let idle, idle.boot == boot {
            try connection.run("DELETE FROM clock_map WHERE id=?", idle.id)
        }
    }

    /// What time it is, as far as is known: a receiver's time sets no clock.
    var rightTime: WallTime { clockMap.resolve(clock.stamp(), boot: boot).wall }

    /// Whether this boot's clock has been synced since it started.
    package func clockSyncedThisBoot() -> Bool { memory.bootIsSynced }

    /// The newest moment of this boot whose right wall time is known.
    package func clockAnchor() -> ClockMap.Anchor? { clockMap.anchor(of: boot) }

    /// The row of a boot; one that there is none of, nor a moment, where this database does not know it.
    func boot(named id: String) throws -> Int64 {
        let rows = try connection.prepare("SELECT id FROM boots WHERE boot_id=?")
        try rows.bind(id, at: 1)
        return try rows.step() ? rows.required(0) : 0
    }

    /// Forgets boots that no record and no loss refers to any more, and what was noted long before the oldest.
    ///
    /// Rows and boots ascend together, so the first row of each table tells the oldest boot it needs.
    package func pruneClockMap() throws {
        // Records of an older database are not in the order of these boots.
        guard memory.older.isEmpty else { return }
        let (oldest, moment) = try oldestRecord()
        // The ledger keeps a few moments for ever: their boots alone stay, not all since the first loss.
        let unneeded = """
            NOT IN (SELECT first_boot FROM losses UNION SELECT open_boot FROM losses
            UNION SELECT last_boot FROM losses)
            """
        try begin()
        try connection.run("DELETE FROM clock_map WHERE boot<? AND boot \(unneeded)", oldest)
        var isPruned = connection.changes > 0
        try connection.run("DELETE FROM boots WHERE id<? AND id \(unneeded)", oldest)
        // An hour is more than records are ever out of the order of their stamps.
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

    /// The boot and the boot time (ms) of the oldest record; now, where there is none.
    private func oldestRecord() throws -> (boot: Int64, boottime: Int64) {
        var oldest = (boot: boot, boottime: clock.now().milliseconds)
        let tables = streams.kinds.map(\.table) + ["segments", "open_survey"]
        let moments = tables.map { "boot, boottime FROM \($0)" }
        for moment in moments + ["start_boot, start_boottime FROM surveys"] {
            let row = try connection.prepare("SELECT \(moment) ORDER BY rowid LIMIT 1")
            guard try row.step() else { continue }
            let first = (boot: row.required(0), boottime: row.required(1))
            if first < oldest { oldest = first }
        }
        return oldest
    }
}
