// The files of an archive and their committed lengths.
import Host
package import SQLite
import ServerBase

/// A record file of the archive and its committed length.
package struct ArchiveFile: Sendable, Equatable {
    package var stream: String
    package var date: String
    package var device: String
    /// Bytes.
    package var length: Int64

    package var path: String { Self.path(in: Self.folder(stream, date, device)) }

    /// Returns the folder of a device's day in a stream, relative to the archive's directory.
    package static func folder(_ stream: String, _ date: String, _ device: String) -> String {
        "stream=\(stream)/date=\(date)/device=\(device)"
    }

    /// Returns the folder of the audio files of a device's day in a stream.
    ///
    /// Apart from the records, because Arrow, Spark and Trino read every file of a partition.
    package static func audioFolder(_ stream: String, _ date: String, _ device: String) -> String {
        "audio/\(stream)/\(date)/\(device)"
    }

    /// Returns the path of a folder's record file.
    package static func path(in folder: String) -> String { "\(folder)/records.ndjson" }

    package init(stream: String, date: String, device: String, length: Int64) {
        (self.stream, self.date, self.device, self.length) = (stream, date, device, length)
    }

    /// Parses a path; nil if no archive can have such a record file.
    ///
    /// A folder or a database may come from elsewhere, as a backup does, and a path leads to a file.
    package init?(path: String, length: Int64) {
        let parts = path.split(separator: "/")
        guard parts.count == 4, parts[0].hasPrefix("stream="), parts[1].hasPrefix("date="),
            parts[2].hasPrefix("device="), (0..<1 << 48).contains(length)
        else { return nil }
        stream = String(parts[0].dropFirst(7))
        date = String(parts[1].dropFirst(5))
        device = String(parts[2].dropFirst(7))
        self.length = length
        guard isName(stream), isName(device), Day(date) != nil, self.path == path else {
            return nil
        }
    }

    /// Parses a row of a database's table `files`; throws a `Failure` if no archive can have it.
    package init(path: String, length: Int64, in database: String) throws {
        guard let file = Self(path: path, length: length) else {
            throw Failure(
                "\(database) names \(printable(path)), which is not a record file of waypost-receiver: "
                    + "use another backup"
            )
        }
        self = file
    }
}

/// The number of records and batches stored.
package struct ArchiveTotals: Sendable, Equatable {
    package var records: Int64
    package var batches: Int64

    package init(records: Int64, batches: Int64) {
        (self.records, self.batches) = (records, batches)
    }
}

/// Read access to the archive's index for code other than its writer.
package enum ArchiveFiles {
    package static func index(in directory: String) -> String { "\(directory)/.receiver.sqlite" }

    /// Returns all files, newest days first; none if no receiver has served the directory.
    package static func all(in directory: String) throws -> [ArchiveFile] {
        // A negative limit is none (sqlite.org/lang_select.html).
        try page(of: -1, after: "", in: directory).sorted { $0.date > $1.date }
    }

    /// Returns up to `count` files in path order after `path`; "" starts at the first.
    package static func page(of count: Int64, after path: String, in directory: String) throws
        -> [ArchiveFile]
    {
        let archive = ArchiveFiles.index(in: directory)
        guard fileSize(archive) != nil else { return [] }
        return try Connection(path: archive, access: .readOnly).rows(
            "SELECT path, length FROM files WHERE path>? AND length>0 ORDER BY path LIMIT ?",
            path,
            count
        ) { ArchiveFile(path: $0.text(0), length: $0.required(1)) }
    }
}

extension ArchiveFiles {
    /// Returns what an archive's database has counted; `schema`: its name among attached ones.
    package static func totals(_ database: borrowing Connection, of schema: String = "main") throws
        -> ArchiveTotals
    {
        let sums = "CAST(total(records) AS INTEGER), CAST(total(batches) AS INTEGER)"
        let row = try database.prepare("SELECT \(sums) FROM \(schema).streams")
        _ = try row.step()
        // Leaves room for those that are stored from now on, whatever the database says.
        let most = Int64.max / 2
        return ArchiveTotals(
            records: min(row.required(0), most),
            batches: min(row.required(1), most)
        )
    }

    package static func records(_ database: borrowing Connection) throws -> Int64 {
        try totals(database).records
    }

    /// Returns the committed length of a file; nil if the database does not know it.
    package static func length(_ path: String, _ database: borrowing Connection) throws -> Int64? {
        try database.integer("SELECT length FROM files WHERE path=?", path)
    }
}
