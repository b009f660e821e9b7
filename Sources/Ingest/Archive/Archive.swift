// Where accepted records are kept: files that people and engines read, and an index that knows what is in them.
import Foundation
import SQLite

/// What became of a batch.
package struct Receipt: Sendable, Equatable {
    package var accepted: Int
    package var duplicates: Int
}

/// Stores each record once, however often and in whatever batch it comes.
///
/// A batch is in the archive when the index's transaction is committed. Files are appended before that and
/// their committed lengths stand in the same transaction, so whatever a crash left behind is cut off at start.
package final class Archive: @unchecked Sendable {
    // Unchecked because the index and the files are used under `lock`, and the totals under theirs.
    package struct Totals: Sendable, Equatable {
        package var records: Int64
        package var batches: Int64
    }

    private let directory: String
    private let index: Connection
    private let folders: DurableFolders
    private let lock = NSLock()
    /// Held as long as the archive lives.
    private let place: DirectoryLock
    private let totalsLock = NSLock()
    private var total = Totals(records: 0, batches: 0)

    package init(directory: String) throws {
        self.directory = directory
        place = try DirectoryLock(directory)
        folders = DurableFolders(directory)
        let database = "\(directory)/.receiver.sqlite"
        if !FileManager.default.fileExists(atPath: database), try Recovery.hasRecords(directory) {
            throw Trouble(
                "\(directory) has records but no \(database): restore it, or choose another --data"
            )
        }
        index = try Connection(path: database, access: .readWrite)
        try index.execute(Self.schema)
        total = try Self.readTotals(index)
        try Recovery.run(index, directory)
    }

    private static let schema = """
        PRAGMA journal_mode=WAL;
        PRAGMA synchronous=FULL;
        PRAGMA journal_size_limit=16777216;
        CREATE TABLE IF NOT EXISTS batches(key TEXT PRIMARY KEY, accepted INTEGER, duplicates INTEGER)
        WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS records(id TEXT PRIMARY KEY) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS files(path TEXT PRIMARY KEY, length INTEGER) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS totals(row INTEGER PRIMARY KEY CHECK (row = 1), records INTEGER, batches INTEGER);
        INSERT INTO totals SELECT 1, (SELECT count(*) FROM records), (SELECT count(*) FROM batches)
        WHERE NOT EXISTS (SELECT 1 FROM totals);
        """

    private static func readTotals(_ index: borrowing Connection) throws -> Totals {
        let row = try index.prepare("SELECT records, batches FROM totals")
        guard try row.step() else { return Totals(records: 0, batches: 0) }
        return Totals(records: row.required(0), batches: row.required(1))
    }

    /// Records and batches stored; waits for nobody.
    package var totals: Totals { totalsLock.withLock { total } }

    /// Stores what is new of a batch; all of it is on the disk when this returns.
    ///
    /// `key`: the gateway's own for this batch.
    package func store(_ batch: IncomingBatch, key: String, body: ByteView) throws -> Receipt {
        // A key is one gateway's for one stream; two gateways may choose the same.
        let key = "\(batch.device)/\(batch.stream)/\(key)"
        return try lock.withLock {
            if let known = try receipt(of: key) { return known }
            let files = try BatchFiles(batch, in: folders, lengths: settleLengths(batch))
            try index.execute("BEGIN IMMEDIATE")
            do {
                let receipt = try append(batch, body, files)
                try remember(key, receipt, files)
                try index.execute("COMMIT")
                totalsLock.withLock {
                    total.records += Int64(receipt.accepted)
                    total.batches += 1
                }
                return receipt
            } catch {
                if !index.isAutocommit { try index.execute("ROLLBACK") }
                files.undo()
                throw error
            }
        }
    }

    private func receipt(of key: String) throws -> Receipt? {
        let row = try index.prepare("SELECT accepted, duplicates FROM batches WHERE key=?")
        try row.bind(key, at: 1)
        guard try row.step() else { return nil }
        return Receipt(accepted: Int(row.required(0)), duplicates: Int(row.required(1)))
    }

    /// Where each file of a batch ends.
    ///
    /// A person may have moved or emptied one. That is noted before anything is written to it: a crash between
    /// would leave a file that is shorter than what was committed, and the next start would call it damaged.
    private func settleLengths(_ batch: IncomingBatch) throws -> [String: Int64] {
        var lengths: [String: Int64] = [:]
        for date in batch.dates {
            let file = BatchFiles.name(batch, date)
            let row = try index.prepare("SELECT length FROM files WHERE path=?")
            try row.bind(file, at: 1)
            let committed = try row.step() ? row.required(0) : 0
            row.reset()
            let length = min(committed, fileSize("\(directory)/\(file)") ?? 0)
            if length < committed { try note(length, of: file) }
            lengths[date] = length
        }
        return lengths
    }

    /// Files what is new; the rest was stored before.
    private func append(
        _ batch: IncomingBatch,
        _ body: ByteView,
        _ files: BatchFiles
    ) throws -> Receipt {
        var receipt = Receipt(accepted: 0, duplicates: 0)
        let claim = try index.prepare("INSERT OR IGNORE INTO records VALUES (?)")
        try batch.forEachRecord(of: body) { record in
            try claim.bind(record.id, at: 1)
            try claim.run()
            guard index.changes == 1 else {
                receipt.duplicates += 1
                return
            }
            try files.append(record, of: body)
            receipt.accepted += 1
        }
        try files.finish()
        return receipt
    }

    private func remember(_ key: String, _ receipt: Receipt, _ files: BatchFiles) throws {
        for (file, length) in files.lengths { try note(length, of: file) }
        let row = try index.prepare("INSERT INTO batches VALUES (?,?,?)")
        try row.bind(key, at: 1)
        try row.bind(Int64(receipt.accepted), at: 2)
        try row.bind(Int64(receipt.duplicates), at: 3)
        try row.run()
        try index.run(
            "UPDATE totals SET records=records+?, batches=batches+1",
            Int64(receipt.accepted)
        )
    }

    private func note(_ length: Int64, of file: String) throws {
        let row = try index.prepare("INSERT OR REPLACE INTO files VALUES (?,?)")
        try row.bind(file, at: 1)
        try row.bind(length, at: 2)
        try row.run()
    }
}
