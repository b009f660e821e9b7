// What a migration does beyond its statements: it mends numbers that stand for no record, which versions before 5 could
// leave, and changes tables whose names it has to look up.
import SQLite

/// What depends on what a database holds.
enum SchemaRepair {
    /// Marks numbers of the live streams that look pending and have no row as gone: their records were uploaded or
    /// evicted, and the mark was lost.
    static func closeHoles(_ connection: borrowing Connection) throws {
        for (stream, table) in [
            (1, "location"), (2, "chunks"), (3, "sightings"), (4, "events"), (5, "surveys"),
        ] as [(Int64, String)] {
            for hole in try holes(connection, stream, table) {
                try connection.run(
                    "INSERT OR REPLACE INTO gone VALUES (0,?,?,?)",
                    stream,
                    hole.lowerBound,
                    hole.upperBound
                )
            }
        }
    }

    /// Gives the tables of the user's streams the column of the seventh version.
    static func addSums(_ connection: borrowing Connection) throws {
        let rows = try connection.prepare(
            "SELECT name FROM sqlite_schema WHERE type='table' AND name GLOB 'user_[0-9]*'"
        )
        var tables: [String] = []
        while try rows.step() { tables.append(rows.text(0)) }
        rows.reset()
        for table in tables {
            try connection.execute("ALTER TABLE \(table) ADD COLUMN sum INTEGER")
        }
    }

    /// Ranges without rows that neither a batch nor `gone` has.
    private static func holes(
        _ connection: borrowing Connection,
        _ stream: Int64,
        _ table: String
    ) throws -> [ClosedRange<Int64>] {
        let next =
            try connection.integer(
                "SELECT next FROM sequences WHERE database=0 AND stream=?",
                stream
            ) ?? 1
        let known = FrozenRanges(through: 0, try knownRanges(connection, stream))
        let rows = try connection.prepare("SELECT id FROM \(table) WHERE id>? ORDER BY id")
        try rows.bind(known.through, at: 1)
        var holes: [ClosedRange<Int64>] = []
        var expected = known.through + 1
        while try rows.step() {
            let id = try rows.required(0).checked("a row")
            if id > expected { holes += known.free(in: expected...(id - 1)) }
            expected = max(expected, id + 1)
        }
        if expected < next { holes += known.free(in: expected...(next - 1)) }
        return holes
    }

    private static func knownRanges(
        _ connection: borrowing Connection,
        _ stream: Int64
    ) throws -> [ClosedRange<Int64>] {
        let rows = try connection.prepare(
            """
            SELECT first, last FROM gone WHERE database=0 AND stream=?1
            UNION ALL SELECT first, last FROM batches WHERE stream=?1
            """
        )
        try rows.bind(stream, at: 1)
        var ranges: [ClosedRange<Int64>] = []
        while try rows.step() {
            guard rows.required(0) <= rows.required(1), rows.required(1).isPlausible,
                rows.required(0) > -(1 << 40)
            else { continue }
            ranges.append(rows.required(0)...rows.required(1))
        }
        return ranges
    }
}
