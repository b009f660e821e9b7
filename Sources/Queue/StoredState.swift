// Loads the state that the writer and readers share.
import Records
import SQLite

/// Loads the clock map up to and including entry `last`.
func loadClockMap(_ connection: borrowing Connection, through last: Int64) throws -> ClockMap {
    var map = ClockMap()
    let rows = try connection.prepare(
        "SELECT id, boot, boottime, wall, synced, source FROM clock_map WHERE id<=? ORDER BY id"
    )
    try rows.bind(last, at: 1)
    while try rows.step() { map.add(ClockMap.Entry(rows)) }
    return map
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

/// Loads the newest run.
func loadLastRun(_ connection: borrowing Connection) throws -> AudioRun? {
    try loadRun(connection, "id>0")
}

/// Loads the newest run that meets a condition.
func loadRun(_ connection: borrowing Connection, _ condition: String) throws -> AudioRun? {
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
