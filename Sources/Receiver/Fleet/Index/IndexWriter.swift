// Reads files of records into the index, a part of a file at a time.
import Host
import SQLite

/// Used by one thread at a time; several processes may write the same index.
///
/// How far a file was read stands in the transaction that has its rows, so nothing is read twice or left out.
final class IndexWriter {
    /// Bytes that one transaction reads: a view waits for no writer, but another writer does.
    private static let step = 4 << 20
    /// A line or detail that is longer is not kept.
    static let longestKept = 4096

    private let database: Connection
    private let directory: String

    init(_ database: consuming Connection, directory: String) {
        self.database = database
        self.directory = directory
    }

    /// How far each file was read, by its path.
    func lengths() throws -> [String: Int64] {
        Dictionary(try Self.files(database).map { ($0.file.path, $0.file.length) }) { $1 }
    }

    func records() throws -> Int64 {
        try database.integer("SELECT sum(records) FROM files") ?? 0
    }

    func rows(_ table: IndexCheck.Table) throws -> Statement {
        try database.prepare(table.select(gone: false))
    }

    func clear() throws { try FleetIndex.clear(database) }

    func isWhole() throws -> Bool { try FleetIndex.isWhole(database) }

    func noteWhole() throws { try FleetIndex.noteWhole(database) }

    /// Reads on in these files, as many bytes as one transaction takes; those that have more to be read.
    ///
    /// `look` is told of each what came of it. One that cannot be read holds up no other, unless `look` throws.
    func follow(_ files: [ArchiveFile], look: (ArchiveFile, Trouble?) throws -> Void) throws
        -> [ArchiveFile]
    {
        try database.execute("BEGIN IMMEDIATE")
        do {
            var rest = files[...]
            var budget = Self.step
            while let file = rest.first, budget > 0 {
                let (read, isDone) = try followOrLeave(file, budget: budget, look)
                budget -= max(4096, read)
                if isDone { rest = rest.dropFirst() }
            }
            try database.execute("COMMIT")
            return Array(rest)
        } catch {
            if !database.isAutocommit { try? database.execute("ROLLBACK") }
            throw error
        }
    }

    /// As `follow`; what is known of a file that cannot be read stays as it is.
    private func followOrLeave(
        _ file: ArchiveFile,
        budget: Int,
        _ look: (ArchiveFile, Trouble?) throws -> Void
    ) throws -> (Int, Bool) {
        try database.execute("SAVEPOINT file")
        do {
            let done = try follow(file, budget: budget)
            try database.execute("RELEASE file")
            try look(file, nil)
            return done
        } catch let trouble as Trouble {
            try database.execute("ROLLBACK TO file; RELEASE file")
            try look(file, trouble)
            return (0, true)
        }
    }

    /// The bytes that were read, and whether the file is read to its committed length.
    private func follow(_ file: ArchiveFile, budget: Int) throws -> (Int, Bool) {
        // One that is not there was archived away: what is known of it stays.
        guard let lines = try LineFile.open("\(directory)/\(file.path)") else { return (0, true) }
        var known = try row(of: file)
        // A length that is noted late is less than what was read, and no sign of another file.
        if known.length > 0, try lines.tail(before: known.length) != known.tail {
            try forget(known.id)
            known = try row(of: file)
        }
        guard known.length < file.length else { return (0, true) }
        var part = IndexedPart(
            device: file.device,
            stream: file.stream,
            file: known.id,
            now: SystemClock().wall().milliseconds
        )
        let end = try lines.forEachLine(from: known.length, to: file.length, budget: budget) {
            try part.take($0, database)
        }
        try part.finish(database)
        let update = try database.prepare(
            """
            UPDATE files SET length=?1, tail=?2, records=records+?3, broken=broken+?4,
            first=min(coalesce(first, ?5), coalesce(?5, first)), last=max(coalesce(last, ?6), coalesce(?6, last))
            WHERE id=?7
            """
        )
        try update.bind(end, at: 1)
        try update.bind(lines.tail(before: end), at: 2)
        try update.bind([part.records, part.broken, part.first, part.last, known.id], from: 3)
        try update.run()
        return (Int(end - known.length), end >= file.length)
    }

    private func row(of file: ArchiveFile) throws -> (id: Int64, length: Int64, tail: [UInt8]) {
        for _ in 0..<2 {
            let row = try database.prepare(
                "SELECT id, length, tail FROM files WHERE device=? AND stream=? AND date=?"
            )
            try bind(file, row)
            if try row.step() { return (row.required(0), row.required(1), row.data(2)) }
            let new = try database.prepare(
                """
                INSERT INTO files(device, stream, date, length, tail, records, broken)
                VALUES (?,?,?,0,x'',0,0)
                """
            )
            try bind(file, new)
            try new.run()
        }
        throw Trouble("the index takes no file")
    }

    private func bind(_ file: ArchiveFile, _ row: borrowing Statement) throws {
        try row.bind(file.device, at: 1)
        try row.bind(file.stream, at: 2)
        try row.bind(file.date, at: 3)
    }

    /// Takes a file out, which is then read from its beginning.
    private func forget(_ file: Int64) throws {
        for table in ["latest", "events", "states", "slots"] {
            try database.run("DELETE FROM \(table) WHERE file=?", file)
        }
        try database.run("DELETE FROM files WHERE id=?", file)
    }
}
