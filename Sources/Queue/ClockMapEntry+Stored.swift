// Loads the state that the writer and readers share.
import Records
import SQLite

/// Loads the clock map up to and including entry `last`.
func loadClockMap(_ connection: borrowing Connection, through last: Int64) throws -> ClockMap {
    var map = ClockMap()
    for entry in try clockEntries(connection, through: last) { map.add(entry) }
    return map
}

/// Loads the entries of the clock map up to and including entry `last`.
func clockEntries(
    _ connection: borrowing Connection,
    through last: Int64 = .max
) throws -> [ClockMap.Entry] {
    let sql =
        "SELECT id, boot, boottime, wall, synced, source FROM clock_map WHERE id<=? ORDER BY id"
    return try connection.prepare(sql, last).compactMap { ClockMap.Entry($0) }
}

extension ClockMap.Entry {
    /// Reads a row of id, boot, boottime, wall, synced and source.
    init(_ row: borrowing Statement) {
        self.init(
            id: row.required(0),
            boot: row.required(1),
            boottime: row.required(2),
            wall: row.required(3),
            synced: row.required(4) != 0,
            source: row.isNull(5) ? nil : ClockSource(rawValue: row.text(5))
        )
    }
}

/// Loads the newest run that meets a condition.
func loadRun(
    _ connection: borrowing Connection,
    _ condition: String = "id>0"
) throws -> AudioRun? {
    let runs = try connection.prepare(
        """
        SELECT id, codec, rate, device, preskip, overlap_segments FROM runs WHERE \(condition)
        ORDER BY id DESC LIMIT 1
        """
    )
    guard try runs.step(), let codec = AudioCodec(rawValue: Int(runs.required(1))),
        ([0, 2, 4, 5] as [Int32]).allSatisfy({ runs.required($0).isPlausible })
    else { return nil }
    return AudioRun(
        id: runs.required(0),
        codec: codec,
        rate: Int(runs.required(2)),
        device: runs.text(3),
        preskip: Int(runs.required(4)),
        overlapSegments: Int(runs.required(5))
    )
}
