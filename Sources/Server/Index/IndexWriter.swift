// Reads record files into the index, part by part.
import Host
import SQLite
import ServerArchive
import ServerBase

/// Writes the index; used by one thread at a time, and several processes may write the same index.
///
/// A file's checkpoint is in the same transaction as its rows, so nothing is read twice or left
/// out.
final class IndexWriter {
    /// Bytes read per transaction; readers never wait for it, but other writers do.
    private static let step = 4 << 20
    /// Longer lines and details are not stored.
    static let longestKept = 4096

    let database: Connection
    private let directory: String

    init(_ database: consuming Connection, directory: String) {
        self.database = database
        self.directory = directory
    }

    /// Returns the checkpoint of each file, by path.
    func lengths() throws -> [String: Int64] {
        Dictionary(try Self.files(database).map { ($0.file.path, $0.file.length) }) { $1 }
    }

    func records() throws -> Int64 {
        try database.integer("SELECT sum(records) FROM files") ?? 0
    }

    /// Reads on in these files within one transaction's budget; returns those with more to read.
    ///
    /// Calls `look` with the result of each file. An unreadable file does not block the others,
    /// unless `look` throws.
    func follow(_ files: [ArchiveFile], look: (ArchiveFile, (any Error)?) throws -> Void)
        throws
        -> [ArchiveFile]
    {
        try database.transaction { _ in
            var rest = files[...]
            var budget = Self.step
            while let file = rest.first, budget > 0 {
                let (read, isDone) = try followOrLeave(file, budget: budget, look)
                invariant(isDone || read > 0, "an index reads on, or has all of a file")
                budget -= max(4096, read)
                if isDone { rest = rest.dropFirst() }
            }
            return Array(rest)
        }
    }

    /// Like `follow` for one file; keeps the rows of a file that cannot be read.
    private func followOrLeave(
        _ file: ArchiveFile,
        budget: Int,
        _ look: (ArchiveFile, (any Error)?) throws -> Void
    ) throws -> (Int, Bool) {
        try database.execute("SAVEPOINT file")
        do {
            let done = try follow(file, budget: budget)
            try database.execute("RELEASE file")
            try look(file, nil)
            return done
        } catch  where error is Failure || error is SystemError {
            try database.execute("ROLLBACK TO file; RELEASE file")
            try look(file, error)
            return (0, true)
        }
    }

    /// Returns the bytes read, and whether the file's committed length was reached.
    private func follow(_ file: ArchiveFile, budget: Int) throws -> (Int, Bool) {
        // A missing file was archived elsewhere; its rows stay.
        guard let lines = try LineFile.open("\(directory)/\(file.path)") else { return (0, true) }
        var known = try row(of: file)
        // A length reported late is below the checkpoint, which does not mean that the file was
        // replaced.
        if known.length > 0, try lines.tail(before: known.length) != known.tail {
            try forget(known.id)
            known = try row(of: file)
        }
        guard known.length < file.length else { return (0, true) }
        var part = IndexedPart(
            device: file.device,
            stream: file.stream,
            date: file.date,
            file: known.id,
            now: SystemClock().wall().milliseconds
        )
        let end = try lines.forEachLine(from: known.length, to: file.length, budget: budget) {
            try part.receive($0, at: $1, database)
        }
        try part.finish(database)
        try database.run(
            """
            UPDATE files SET length=?1, tail=?2, records=records+?3, broken=broken+?4,
            first=min(coalesce(first, ?5), coalesce(?5, first)), last=max(coalesce(last, ?6), coalesce(?6, last)),
            left_out=left_out+?8
            WHERE id=?7
            """,
            row: [
                end, try lines.tail(before: end), part.records, part.broken, part.first, part.last,
                known.id, part.leftOut,
            ]
        )
        return (Int(end - known.length), end >= file.length)
    }

    private func row(of file: ArchiveFile) throws -> (id: Int64, length: Int64, tail: [UInt8]) {
        let row = try database.prepare(
            "SELECT id, length, tail FROM files WHERE device=? AND stream=? AND date=?",
            file.device,
            file.stream,
            file.date
        )
        if try row.step() { return (row.required(0), row.required(1), row.data(2)) }
        try database.run(
            """
            INSERT INTO files(device, stream, date, length, tail, records, broken, left_out)
            VALUES (?,?,?,0,x'',0,0,0)
            """,
            row: [file.device, file.stream, file.date]
        )
        return (database.lastInsertedRow, 0, [])
    }

    /// Removes a file's rows, so that it is read again from its beginning.
    func forget(_ file: Int64) throws {
        // The rows of beacons have no index by file, so they are found by the file's series.
        try database.run(
            "DELETE FROM beacons WHERE file=?1 AND beacon IN (SELECT beacon FROM series WHERE file=?1)",
            file
        )
        let tables = [
            "latest", "events", "states", "slots", "series", "readings", "effort", "detections",
        ]
        for table in tables {
            try database.run("DELETE FROM \(table) WHERE file=?", file)
        }
        try database.run("DELETE FROM files WHERE id=?", file)
    }
}
