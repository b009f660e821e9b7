// Whether the records of a damaged database are there to their last byte.
internal import SQLite
package import Streams

extension Reader {
    /// A page that is missing reads as zeros, and a large record has pages of its own: at least so many bytes of it.
    ///
    /// The least that the last of them holds (sqlite.org/fileformat2.html, section 1.6) with pages of 1 KiB; larger
    /// ones hold more.
    private static let leastOnAPage = 880

    /// A journal that was cut takes pages back, and not the others: a table may have a page of another one.
    private static let isOfAnotherTable =
        "typeof(boot) || typeof(boottime) || typeof(wall) <> 'integerintegerinteger'"

    /// Reads every record of a range to its last byte; throws where one is not there.
    package func check(_ stream: Stream, _ range: ClosedRange<Int64>) throws {
        let kind = kind(of: stream)
        let ids = try ids(stream, range)
        for end in [range.lowerBound, range.upperBound] { _ = try ids.id(end) }
        switch kind.shape {
        case .plain(let columns):
            try rows(kind, range) { _ in }
            // Text all of it, and in text there is no zero.
            let zeros = columns.flatMap(\.stored).map { Self.zeros(1, in: $0) }
            try refuse(kind.table, zeros + [Self.isOfAnotherTable], range, stream)
        case .sightings:
            try sightings(range) { _ in }
            let zeros = Self.zeros(Self.leastOnAPage, in: "payload")
            let rssi = "rssi NOT BETWEEN -128 AND 127"
            try refuse(kind.table, [zeros, rssi, Self.isOfAnotherTable], range, stream)
        case .sound:
            try refuse(kind.table, [Self.isOfAnotherTable], range, stream)
            try chunks(range) { try checkSound($0) }
        }
    }

    private func checkSound(_ stored: Stored<Chunk>) throws {
        let first = stored.record.firstSegment
        let segments = first...(first + Int64(stored.record.segments) - 1)
        // Its file begins with some of the segment before, where there is one.
        if stored.record.codec == .opus { _ = try segment(first - 1) }
        for id in segments where try segment(id) == nil {
            throw RecordMissing(
                stream: .audio,
                sequence: stored.sequence,
                why: "its sound has a hole"
            )
        }
        // A muted microphone gives zeros, too.
        let sound = "CASE WHEN mean_square>0 THEN data END"
        let zeros = Self.zeros(Self.leastOnAPage, in: sound)
        try refuse("segments", [zeros, Self.isOfAnotherTable], segments, .audio, stored.sequence)
    }

    /// So many zeros in a row that a page must be missing.
    private static func zeros(_ count: Int, in column: String) -> String {
        "instr(CAST(\(column) AS BLOB), zeroblob(\(count)))>0"
    }

    /// Throws where one of the conditions holds for a row; `sequence`: the record it belongs to, if not of its number.
    private func refuse(
        _ table: String,
        _ conditions: [String],
        _ rows: ClosedRange<Int64>,
        _ stream: Stream,
        _ sequence: Int64? = nil
    ) throws {
        let found = try query(
            """
            SELECT id FROM \(table) WHERE id BETWEEN \(rows.lowerBound) AND \(rows.upperBound)
            AND (\(conditions.joined(separator: " OR "))) LIMIT 1
            """
        )
        guard try found.step() else { return }
        throw RecordMissing(
            stream: stream,
            sequence: sequence ?? found.required(0),
            why: "part of it is not there"
        )
    }
}
