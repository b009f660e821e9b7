// Reads a page of records from a device's files, where the last page ended.
import Host
import SQLite
import ServerArchive
import ServerBase
package import ServerIndex

/// A place in a device's records: the next row of the next line.
struct ScanPlace {
    var date: String
    var stream: String
    /// Bytes of the file before the line.
    var offset: Int64 = 0
    /// Rows of the line that were answered.
    var row = 0

    var cursor: String { APIQuery.cursor([date, stream, "\(offset)", "\(row)"]) }

    init(_ file: IndexedFile, offset: Int64 = 0, row: Int = 0) {
        (date, stream, self.offset, self.row) = (file.date, file.stream, offset, row)
    }

    /// Nil if there is no cursor; throws an HTTPError if it is not valid.
    init?(_ query: APIQuery) throws {
        guard let parts = try query.cursor(4) else { return nil }
        guard Day(parts[0]) != nil, isName(parts[1]), let offset = Int64(parts[2]), offset >= 0,
            let row = Int(parts[3]), row >= 0
        else { throw APIQuery.badCursor }
        (date, stream, self.offset, self.row) = (parts[0], parts[1], offset, row)
    }
}

/// A record file in the index.
package struct IndexedFile {
    package var id: Int64
    package var stream: String
    package var date: String
    /// Bytes that are indexed.
    var length: Int64
}

struct RecordScan {
    /// Bytes that are read for one page.
    private static let budget = 16 << 20
    /// The maximum number of files for one page.
    private static let maxFiles = 1000

    /// The place of the first row that the page has no room for.
    private struct PageFullError: Error {
        var offset: Int64
        var row: Int
    }

    let directory: String
    let device: String
    let reader: FleetReader
    let span: TimeSpan
    /// The streams to read.
    let streams: Set<String>

    /// Adds the rows from `place` on; returns the place of the next page, nil at the end.
    ///
    /// `rows`: the rows of a record of a stream.
    func page(
        _ table: inout APITable,
        from place: ScanPlace?,
        _ rows: (RecordLine, String) -> [[APITable.Cell]]
    ) throws -> ScanPlace? {
        let files = try reader.files(
            of: device,
            span,
            streams,
            from: (place?.date ?? "", place?.stream ?? ""),
            maximum: Self.maxFiles + 1
        )
        var budget = Self.budget
        for (index, file) in files.enumerated() {
            guard budget > 0, index < Self.maxFiles else { return ScanPlace(file) }
            let isFirst = file.date == place?.date && file.stream == place?.stream
            let known = isFirst ? place : nil
            if let next = try read(file, from: known, &budget, &table, rows) { return next }
        }
        return nil
    }

    private func read(
        _ file: IndexedFile,
        from place: ScanPlace?,
        _ budget: inout Int,
        _ table: inout APITable,
        _ rows: (RecordLine, String) -> [[APITable.Cell]]
    ) throws -> ScanPlace? {
        budget -= 4096
        let path = "\(directory)/\(file.path(of: device))"
        guard let extent = try reader.extent(of: file, in: span),
            let lines = try LineFile.open(path)
        else { return nil }
        let start = max(extent.lowerBound, place?.offset ?? 0)
        let end = min(extent.upperBound, try lines.size())
        guard start < end else { return nil }
        do {
            let stop = try lines.forEachLine(from: start, to: end, budget: max(1, budget)) {
                guard let line = $0, let time = line.identity?.time, span.contains(time) else {
                    return
                }
                let known = $1.lowerBound == place?.offset ? place?.row ?? 0 : 0
                for (row, cells) in rows(line, file.stream).enumerated() where row >= known {
                    guard !table.isFull else {
                        throw PageFullError(offset: $1.lowerBound, row: row)
                    }
                    table.add(cells)
                }
            }
            budget -= Int(stop - start)
            return stop < end ? ScanPlace(file, offset: stop) : nil
        } catch let full as PageFullError {
            return ScanPlace(file, offset: full.offset, row: full.row)
        }
    }
}

extension IndexedFile {
    package func path(of device: String) -> String {
        ArchiveFile.path(in: ArchiveFile.folder(stream, date, device))
    }
}

extension FleetReader {
    /// Returns the indexed files of a device with a part of a span, in order of date and stream.
    ///
    /// `place`: the first date and stream.
    package func files(
        of device: String,
        _ span: TimeSpan,
        _ streams: Set<String>,
        from place: (date: String, stream: String) = ("", ""),
        maximum: Int
    ) throws -> [IndexedFile] {
        let (first, last) = span.dates
        let row = try database.prepare(
            """
            SELECT id, stream, date, length FROM files WHERE device=?1 AND date >= ?2 AND date <= ?3
            AND (date, stream) >= (?4, ?5) ORDER BY date, stream
            """,
            device,
            first,
            last,
            place.date,
            place.stream
        )
        var files: [IndexedFile] = []
        while files.count < maximum, try row.step() {
            guard streams.contains(row.text(1)) else { continue }
            files.append(
                IndexedFile(
                    id: row.required(0),
                    stream: row.text(1),
                    date: row.text(2),
                    length: row.required(3)
                )
            )
        }
        return files
    }

    /// Returns the bytes of a file with its records of a span; nil if there are none.
    func extent(of file: IndexedFile, in span: TimeSpan) throws -> Range<Int64>? {
        let row = try database.prepare(
            "SELECT min(start), max(end) FROM slots WHERE file=? AND slot >= ? AND slot <= ?",
            file.id,
            span.from.map(IndexedPart.slot) ?? .min,
            span.to.map { IndexedPart.slot(of: $0 - 1) } ?? .max
        )
        guard try row.step(), let start = row.integer(0), let end = row.integer(1), start < end
        else { return nil }
        return start..<min(end, file.length)
    }

    /// Returns the streams of a device with their content, at most 100.
    func contents(of device: String) throws -> [String: StreamContent] {
        try DeviceFacts(latest: latest(of: device)).contents
    }

    /// Returns the stream in the query, else a device's streams with a content.
    package func streams(
        _ query: APIQuery,
        of device: String,
        _ isMeant: (StreamContent) -> Bool
    ) throws -> Set<String> {
        if let stream = try query.stream() { return [stream] }
        return Set(try contents(of: device).filter { isMeant($0.value) }.keys)
    }
}
