// Checks that records of a damaged database are complete to their last byte.
package import Records
import SQLite

extension Reader {
    /// The minimum record bytes on the last overflow page of a large record.
    ///
    /// A missing page reads as zeros. Computed for 1 KiB pages (sqlite.org/fileformat2.html,
    /// section 1.6); larger pages hold more.
    private static let leastOnAPage = 880

    /// The record bytes in a sector of a 1 KiB page, without the page header.
    private static let leastInASector = 480

    /// Returns an SQL condition for values whose types belong to another table.
    ///
    /// A truncated WAL reverts only some pages, so a table may contain another table's page.
    private static func isOfAnotherTable(_ columns: [(name: String, types: String)]) -> String {
        let stamp = ["boot", "boottime", "wall"].map { (name: $0, types: "'integer'") }
        return (stamp + columns).map { "typeof(\($0.name)) NOT IN (\($0.types))" }
            .joined(separator: " OR ")
    }

    /// Returns the SQLite types allowed in a column of plain records.
    private static func types(_ column: Column) -> [(name: String, types: String)] {
        let types =
            switch column.type {
            case "INTEGER": "'integer', 'null'"
            case "TEXT": "'text', 'null'"
            default: "'blob', 'text', 'null'"
            }
        return column.stored.map { ($0, types) }
    }

    /// Reads every record of a range to its last byte; throws if one is missing.
    package func check(_ stream: Stream, _ range: ClosedRange<Int64>) throws {
        let kind = kind(of: stream)
        let ids = try ids(stream, range)
        for end in [range.lowerBound, range.upperBound] { _ = try ids.id(end) }
        switch kind.shape {
        case .plain(let columns):
            try rows(kind, range) { _ in }
            // All columns are text, which does not contain zero bytes.
            let zeros = columns.flatMap(\.stored).map { Self.zeros(1, in: $0) }
            let foreign = Self.isOfAnotherTable(columns.flatMap(Self.types))
            try refuse(kind.table, zeros + [foreign], range, stream)
        case .sightings:
            try sightings(range) { _ in }
            let zeros = Self.zeros(Self.leastInASector, in: "payload")
            let rssi = "rssi NOT BETWEEN -128 AND 127"
            let foreign = Self.isOfAnotherTable([
                ("beacon", "'integer'"), ("rssi", "'integer', 'null'"),
                ("payload", "'blob', 'null'"),
            ])
            try refuse(kind.table, [zeros, rssi, foreign], range, stream)
        case .sound:
            let counts = ["run", "first_segment", "segments", "frames", "overlap_frames", "bytes"]
            let foreign = Self.isOfAnotherTable(counts.map { ($0, "'integer'") })
            try refuse(kind.table, [foreign], range, stream)
            try chunks(range) { try checkAudio($0) }
        }
    }

    /// Throws if a record continues in a part of its page that was never written.
    ///
    /// It then ends in zeros, and the record before it, which follows it in the page, is missing.
    func checkEnd(_ stream: Stream, _ sequence: Int64) throws {
        guard sequence > 1, try mayEndInZeros(stream, sequence) else { return }
        let table = kind(of: stream).table
        let before = try query("SELECT 1 FROM \(table) WHERE id=\(sequence - 1) AND boot<>0")
        guard try !before.step(), try !isGone(stream, sequence - 1) else { return }
        throw RecordMissingError(stream: stream, sequence: sequence, why: "part of it is not there")
    }

    private func mayEndInZeros(_ stream: Stream, _ sequence: Int64) throws -> Bool {
        let kind = kind(of: stream)
        var last = "wall"
        switch kind.shape {
        case .plain(let columns):
            let stored = (columns.flatMap(\.stored).reversed() + ["wall"]).joined(separator: ", ")
            last = "coalesce(\(stored), 0)"
        case .sightings: last = "ifnull(payload, wall)"
        case .sound: break
        }
        let found = try query(
            """
            SELECT CASE typeof(\(last)) WHEN 'integer' THEN \(last) % 256=0
            ELSE substr(CAST(\(last) AS BLOB), -1)=x'00' END FROM \(kind.table) WHERE id=?
            """
        )
        try found.bind(sequence, at: 1)
        return try found.step() && found.required(0) != 0
    }

    /// Whether a record was deleted, according to its own database.
    private func isGone(_ stream: Stream, _ sequence: Int64) throws -> Bool {
        let found = try query(
            """
            SELECT EXISTS (SELECT 1 FROM gone WHERE database=0 AND stream=?
            AND ? BETWEEN first AND last)
            """
        )
        try found.bind([Int64(kind(of: stream).stream.number), sequence], from: 1)
        return try found.step() && found.required(0) != 0
    }

    private func checkAudio(_ stored: Stored<Chunk>) throws {
        let first = stored.record.firstSegment
        let segments = first...(first + Int64(stored.record.segments) - 1)
        // An Opus chunk's file begins with part of the previous segment, if there is one.
        if stored.record.codec == .opus { _ = try segment(first - 1) }
        for id in segments where try segment(id) == nil {
            throw RecordMissingError(
                stream: .audio,
                sequence: stored.sequence,
                why: "its audio has a gap"
            )
        }
        // A muted microphone also produces zeros.
        let sound = "CASE WHEN mean_square>0 THEN data END"
        let zeros = Self.zeros(Self.leastOnAPage, in: sound)
        let foreign = Self.isOfAnotherTable([
            ("run", "'integer'"), ("frames", "'integer'"), ("data", "'blob'"),
        ])
        try refuse("segments", [zeros, foreign], segments, .audio, stored.sequence)
    }

    /// Returns an SQL condition for so many consecutive zeros that a page must be missing.
    private static func zeros(_ count: Int, in column: String) -> String {
        "instr(CAST(\(column) AS BLOB), zeroblob(\(count)))>0"
    }

    /// Throws if a row meets one of the conditions.
    ///
    /// `sequence` is the record that the rows belong to, if they do not have its number.
    private func refuse(
        _ table: String,
        _ conditions: [String],
        _ rows: ClosedRange<Int64>,
        _ stream: Stream,
        _ sequence: Int64? = nil
    ) throws {
        // With a limit SQLite does not read pages after the last row, which may be damaged.
        let found = try query(
            """
            SELECT id FROM (SELECT * FROM \(table) WHERE id BETWEEN \(rows.lowerBound) AND \(rows.upperBound)
            ORDER BY id LIMIT \(rows.count)) WHERE \(conditions.joined(separator: " OR ")) LIMIT 1
            """
        )
        guard try found.step() else { return }
        throw RecordMissingError(
            stream: stream,
            sequence: sequence ?? found.required(0),
            why: "part of it is not there"
        )
    }
}
