// The commands `waypost-receiver index check` and `index rebuild`.
import Glibc
import SQLite
import ServerArchive
import ServerBase

/// The differences that `index check` found between the index and the record files.
package struct IndexReport: Sendable {
    /// The files that were compared, and their records.
    package var files = 0
    package var records: Int64 = 0
    /// Files in the index that no longer exist.
    package var archived = 0
    /// Bytes that are stored but not indexed yet.
    package var behind: Int64 = 0
    /// Descriptions of the first rows that differ.
    package var differences: [String] = []
    package var differenceCount = 0
}

/// Checks and rebuilds the index of a directory, also while a receiver writes to it.
package enum IndexCheck {
    private static let maxShown = 10
    private static let scratchName = ".receiver-index-check.sqlite"

    /// Reads all files into a new index; returns the counts, and errors of files that were
    /// unreadable.
    package static func rebuild(directory: String) throws -> (
        files: Int, records: Int64, unread: [String]
    ) {
        try RebuildLock.hold(in: directory) {
            let index = try FleetIndex.open(in: directory)
            // On a slow machine, a busy receiver locks the index for some seconds at a time.
            index.waitForOthers(milliseconds: 60_000)
            let writer = IndexWriter(index, directory: directory)
            try FleetIndex.clear(writer.database)
            var files = try ArchiveFiles.all(in: directory)
            let count = files.count
            var unread: [String] = []
            while !files.isEmpty {
                files = try writer.follow(files) { if let why = $1 { unread.append("\(why)") } }
            }
            try FleetIndex.recordWhole(writer.database)
            return (count - unread.count, try writer.records(), unread)
        }
    }

    /// Indexes each file again up to the indexed length, and compares the rows.
    ///
    /// Returns nil if there is no index.
    package static func check(directory: String) throws -> IndexReport? {
        guard let live = try FleetIndex.openToRead(in: directory) else { return nil }
        // Opens a read transaction, so that concurrent writes do not show as differences.
        try live.execute("BEGIN")
        let known = try IndexWriter.files(live)
        var report = IndexReport()
        report.behind = try bytesBehind(known, directory)
        let path = "\(directory)/\(scratchName)"
        unlink(path)
        defer { unlink(path) }
        let scratch = try IndexWriter(FleetIndex.scratch(path), directory: directory)
        try live.execute("CREATE TEMP TABLE gone(file INTEGER PRIMARY KEY)")
        for (id, file) in known where fileSize("\(directory)/\(file.path)") == nil {
            try live.run("INSERT INTO gone VALUES (?)", id)
            report.archived += 1
        }
        var files = known.map(\.file)
        report.files = files.count - report.archived
        while !files.isEmpty { files = try scratch.follow(files) { if let why = $1 { throw why } } }
        report.records = try scratch.records()
        for table in Self.tables { try scratch.compare(with: live, table, &report) }
        return report
    }

    private static func bytesBehind(_ known: [(id: Int64, file: ArchiveFile)], _ directory: String)
        throws -> Int64
    {
        let lengths = Dictionary(known.map { ($0.file.path, $0.file.length) }) { $1 }
        return try ArchiveFiles.all(in: directory).reduce(0) { sum, file in
            guard fileSize("\(directory)/\(file.path)") != nil else { return sum }
            return sum + max(0, file.length - (lengths[file.path] ?? 0))
        }
    }

    /// Identifies a row's file by device, stream and date, because file numbers differ between
    /// indexes.
    private static let place =
        "(SELECT device || ' ' || stream || ' ' || date FROM files WHERE files.id = file)"

    /// Identifies a row's series by beacon and key, for the same reason.
    private static let quantity =
        "(SELECT beacon || ' ' || key FROM series WHERE id = readings.series)"

    /// For each table: its key columns, and its value columns.
    private static let tables: [Table] = [
        Table(
            "files",
            ["device", "stream", "date"],
            ["length", "records", "broken", "first", "last", "left_out"],
            file: "id"
        ),
        Table("latest", ["device", "stream"], ["time", "id", "line"]),
        Table("events", ["device", "time", "id"], ["kind", "source", "records", "detail"]),
        Table("states", ["device", "kind", "source"], ["time", "id", "detail"]),
        Table("slots", [place, "slot"], ["records", "start", "end"]),
        Table("series", [place, "beacon", "key"], ["kind", "records", "last", "value", "high"]),
        Table("readings", [place, "slot", quantity], ["records", "total", "low", "high"]),
        Table(
            "effort",
            [place, "source"],
            ["records", "worst", "reason", "until"] + IndexedEffort.states
        ),
        Table("beacons", ["beacon", "device", "stream"], ["time", "kind", "charge"]),
        Table("detections", [place, "species"], ["records", "best", "at", "first", "last"]),
    ]

    struct Table {
        let name: String
        private let key: [String]
        private let value: [String]
        /// The column with the row's file number.
        private let file: String

        init(_ name: String, _ key: [String], _ value: [String], file: String = "file") {
            (self.name, self.key, self.value, self.file) = (name, key, value, file)
        }

        /// Selects each row as key text, value text, and whether its file is gone; ordered by key.
        func select(gone: Bool) -> String {
            func text(_ columns: [String]) -> String {
                columns.map { "quote(\($0))" }.joined(separator: "||' '||")
            }
            let isGone = gone ? "\(file) IN (SELECT file FROM gone)" : "0"
            return "SELECT \(text(key)) AS k, \(text(value)), \(isGone) FROM \(name) ORDER BY k"
        }
    }

    package static func record(_ difference: String, _ report: inout IndexReport) {
        report.differenceCount += 1
        if report.differences.count < maxShown { report.differences.append(difference) }
    }
}

extension IndexWriter {
    /// Returns the files of an index with their numbers and the lengths that were read.
    static func files(_ database: borrowing Connection) throws -> [(
        id: Int64, file: ArchiveFile
    )] {
        try database.rows("SELECT id, stream, date, device, length FROM files") {
            let (stream, date, device) = ($0.text(1), $0.text(2), $0.text(3))
            let length = $0.required(4)
            let file = ArchiveFile(stream: stream, date: date, device: device, length: length)
            return ($0.required(0), file)
        }
    }

    /// Reports rows that differ between this index, freshly read from the files, and another.
    func compare(
        with live: borrowing Connection,
        _ table: IndexCheck.Table,
        _ report: inout IndexReport
    ) throws {
        let mine = try database.prepare(table.select(gone: false))
        let other = try live.prepare(table.select(gone: true))
        var (hasMine, hasOther) = (try mine.step(), try other.step())
        while hasMine || hasOther {
            let (key, known) = (mine.text(0), other.text(0))
            if hasMine, !hasOther || key < known {
                IndexCheck.record("\(table.name): \(key) is missing", &report)
                hasMine = try mine.step()
            } else if hasOther, !hasMine || known < key {
                if other.required(2) == 0 {
                    IndexCheck.record("\(table.name): \(known) is in no file", &report)
                }
                hasOther = try other.step()
            } else {
                if other.required(2) == 0, mine.text(1) != other.text(1) {
                    IndexCheck.record("\(table.name): \(key) is not as in the file", &report)
                }
                (hasMine, hasOther) = (try mine.step(), try other.step())
            }
        }
    }
}
