// Whether the records of a damaged database are there to their last byte.
internal import SQLite
package import Streams

extension Reader {
    /// A page that is missing reads as zeros, and a large record has pages of its own: at least so many bytes of it.
    ///
    /// The least that the last of them holds (sqlite.org/fileformat2.html, section 1.6) with pages of 1 KiB; larger
    /// ones hold more.
    private static let leastOnAPage = 880

    /// Reads every record of a range to its last byte; throws where one is not there.
    package func check(_ stream: Stream, _ range: ClosedRange<Int64>) throws {
        let kind = kind(of: stream)
        let ids = try ids(stream, range)
        for end in [range.lowerBound, range.upperBound] { _ = try ids.id(end) }
        switch kind.shape {
        case .plain(let columns):
            try rows(kind, range) { _ in }
            // Text all of it, and in text there is no zero.
            let stored = columns.flatMap(\.stored)
            try checkZeros(1, kind.table, stored, range, stream, range.lowerBound)
        case .sightings:
            try sightings(range) { _ in }
            let least = Self.leastOnAPage
            try checkZeros(least, kind.table, ["payload"], range, stream, range.lowerBound)
        case .sound: try chunks(range) { try checkSound($0) }
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
        try checkZeros(
            Self.leastOnAPage,
            "segments",
            // A muted microphone gives zeros, too.
            ["CASE WHEN mean_square>0 THEN data END"],
            segments,
            .audio,
            stored.sequence
        )
    }

    /// Throws where so many zeros stand in a row that a page must be missing.
    private func checkZeros(
        _ count: Int,
        _ table: String,
        _ columns: [String],
        _ rows: ClosedRange<Int64>,
        _ stream: Stream,
        _ sequence: Int64
    ) throws {
        let conditions = columns.map { "instr(CAST(\($0) AS BLOB), zeroblob(\(count)))>0" }
        guard !conditions.isEmpty else { return }
        let found = try query(
            """
            SELECT id FROM \(table) WHERE id BETWEEN \(rows.lowerBound) AND \(rows.upperBound)
            AND (\(conditions.joined(separator: " OR "))) LIMIT 1
            """
        )
        guard try found.step() else { return }
        throw RecordMissing(stream: stream, sequence: sequence, why: "part of it is not there")
    }
}
