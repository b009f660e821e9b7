// The archive of accepted records: files for people and query engines, and an index of them.
import Foundation
import Host
import SQLite
package import ServerBase
import Synchronization

/// Stores each record of a device once, however often and in whatever batch it comes.
///
/// A batch is stored when the index's transaction commits. Files are appended before that, and the
/// same transaction records their lengths. The next start therefore cuts off whatever a crash left
/// behind the committed length (and keeps a copy, see `TruncatedFiles`).
package final class Archive: @unchecked Sendable {
    // Unchecked: the queue's leader alone uses index, files and reserve; the totals have a lock.
    private let directory: String
    private let index: Connection
    private let folders: DurableFolders
    private let queue = GroupQueue()
    private var reserve: DiskReserve
    /// Held for the lifetime of the archive.
    private let place: DirectoryLock
    /// Receives the files that have grown and their committed lengths; must not block.
    private let reportStored: @Sendable ([String: Int64]) -> Void
    private let limits: DeviceLimits
    private let isClockSynced: @Sendable () -> Bool
    private let workLimit: @Sendable () -> WorkLimit
    /// The files of a commit that failed but may still be in the WAL, where a start would find it.
    private var unsure: BatchFiles?
    private let total: Mutex<ArchiveTotals>

    /// Opens the archive, and recovers from the end of the last process.
    ///
    /// `bytesPerDay`: the limit of each device; `isClockSynced`: whether the server's clock is good
    /// enough to check the dates of records; `workLimit`: the limit on the work of storing a batch;
    /// `warn`: receives messages about the recovery.
    package init(
        directory: String,
        bytesPerDay: Int64,
        isClockSynced: @escaping @Sendable () -> Bool = {
            ClockEvidence.kernelVouches() ?? false
        },
        workLimit: @escaping @Sendable () -> WorkLimit = { .storing },
        warn: (String) -> Void,
        reportStored: @escaping @Sendable ([String: Int64]) -> Void
    ) throws {
        self.directory = directory
        self.reportStored = reportStored
        self.isClockSynced = isClockSynced
        self.workLimit = workLimit
        limits = DeviceLimits(bytesPerDay: bytesPerDay)
        place = try DirectoryLock(directory)
        folders = DurableFolders(directory)
        reserve = DiskReserve(releasedIn: directory)
        let database = ArchiveFiles.index(in: directory)
        if !FileManager.default.fileExists(atPath: database), try Recovery.hasRecords(directory) {
            throw Failure(
                "\(directory) has records but no \(database): restore it, or choose another --data. "
                    + "A start with an older copy moves records that it does not have to \(TruncatedFiles.name)"
            )
        }
        try RestoreMarker.expectEnded(in: directory)
        // After a failed fsync the WAL may be readable from the cache but not be on the disk.
        try writeAgain(database + "-wal")
        do {
            index = try Connection(path: database, access: .readWrite)
            try KnownRecords.check(index, of: directory)
            try index.execute(Self.schema)
        } catch let error as SQLiteError where error.isFull {
            throw Failure("\(directory) is on a full disk: make room and start again")
        }
        total = Mutex(try ArchiveFiles.totals(index))
        try Recovery.run(index, directory, warn: warn)
        reserve.make()
    }

    /// A batch changes a few small rows in several tables: smaller pages make the journal shorter.
    private static let schema = """
        PRAGMA page_size=1024;
        PRAGMA journal_mode=WAL;
        PRAGMA wal_autocheckpoint=4000;
        PRAGMA synchronous=FULL;
        PRAGMA journal_size_limit=16777216;
        BEGIN IMMEDIATE;
        \(KnownRecords.schema) \(Contacts.tables) \(DeviceLimits.tables)
        CREATE TABLE IF NOT EXISTS files(path TEXT PRIMARY KEY, length INTEGER) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS server(row INTEGER PRIMARY KEY CHECK (row = 1), id TEXT NOT NULL);
        INSERT OR IGNORE INTO server VALUES (1, lower(hex(randomblob(16))));
        COMMIT;
        """

    /// Returns whether two attached databases are of the same server, as far as they have its id.
    static func isSameServer(_ one: String, _ other: String, _ database: borrowing Connection)
        throws -> Bool
    {
        for schema in [one, other] {
            let sql = "SELECT 1 FROM \(schema).sqlite_schema WHERE name='server'"
            guard try database.integer(sql) == 1 else { return true }
        }
        let sql = "SELECT 1 FROM \(one).server AS one JOIN \(other).server AS other USING (id)"
        return try database.integer(sql) == 1
    }

    /// The number of records and batches stored; never blocks on the disk.
    package var totals: ArchiveTotals { total.withLock { $0 } }

    /// Stores the new records of a batch; they are on the disk when this returns.
    ///
    /// `key`: the gateway's idempotency key. Batches that wait at the same time are stored in one
    /// transaction: a disk takes as long for one as for thirty.
    package func store(_ batch: IncomingBatch, key: String, body: ByteView) throws -> Receipt {
        let mine = WaitingBatch(batch: batch, key: key, body: body)
        return try queue.perform(mine, store)
    }

    /// Stores a group and sets each batch's result; called by one thread at a time.
    package func store(_ group: [WaitingBatch]) {
        do {
            try commit(group)
        } catch  where group.count > 1 {
            // One bad batch must not fail the others: store each alone.
            for one in group {
                do { try commit([one]) } catch { one.result = .failure(error) }
            }
        } catch {
            for one in group { one.result = .failure(error) }
        }
    }

    private func commit(_ group: [WaitingBatch]) throws {
        try settleCommit()
        let lengths = try settleLengths(group)
        let files = BatchFiles(in: folders, lengths: lengths)
        try index.execute("BEGIN IMMEDIATE")
        var stored: [(WaitingBatch, Receipt)] = []
        var new = ArchiveTotals(records: 0, batches: 0)
        let now = SystemClock().wall()
        do {
            for one in group {
                let answer = try RecentBatches.receipt(of: one, index)
                let known = try answer.flatMap { try isStored(one) ? $0 : nil }
                let newFiles = Int64(one.batch.dates.count { lengths[one.batch.folder($0)] == 0 })
                do {
                    if known == nil {
                        try limits.admit(one.batch, newFiles: newFiles, at: now, index)
                    }
                } catch let refusal as HTTPError {
                    // Nothing of it was written; the others are still stored.
                    one.result = .failure(refusal)
                    continue
                }
                let receipt = try known ?? append(one, files, newFiles: newFiles, at: now)
                let added = known == nil ? receipt.accepted : nil
                try Sequences.record(one.batch, at: now, index)
                try Contacts.record(one.batch, added: added, at: now, index)
                stored.append((one, receipt))
                guard known == nil else { continue }
                try RecentBatches.record(receipt, of: one, index)
                new.records += Int64(receipt.accepted)
                new.batches += 1
            }
            try files.finish()
            for (file, length) in files.lengths { try record(length, of: file) }
        } catch {
            if !index.isAutocommit { try index.execute("ROLLBACK") }
            files.undo()
            throw error
        }
        try commit(files)
        for (one, receipt) in stored { one.result = .success(receipt) }
        total.withLock {
            $0.records += new.records
            $0.batches += new.batches
        }
        reportStored(files.lengths)
        reserve.make()
    }

    /// Commits a transaction whose files are on the disk.
    ///
    /// A commit whose fsync failed may be complete in the WAL. If its files were cut now, a start
    /// would find less than was committed. They stay until another commit has replaced it there.
    private func commit(_ files: BatchFiles) throws {
        do {
            try index.execute("COMMIT")
        } catch {
            unsure = files
            if !index.isAutocommit { try index.execute("ROLLBACK") }
            throw error
        }
    }

    /// Replaces a failed commit in the WAL with one that changes nothing, then removes its files.
    private func settleCommit() throws {
        guard let files = unsure else { return }
        // Not an UPDATE: SQLite writes nothing for one that leaves a row as it is.
        try index.execute("REPLACE INTO server SELECT * FROM server")
        files.undo()
        unsure = nil
    }

    /// Returns whether all records of the batch are stored; a repeated key may carry new ones, and
    /// none of them may be lost.
    private func isStored(_ one: WaitingBatch) throws -> Bool {
        var ids = try KnownIDs(of: one.batch.device, index)
        var isStored = true
        try one.batch.forEachRecord(of: one.body, limit: workLimit()) { record in
            isStored = try isStored && ids.contains(record.id, index)
        }
        return isStored
    }

    /// Returns the length of each file of these batches, by folder.
    ///
    /// A person may have moved or emptied a file. The shorter length is committed before anything
    /// is written: otherwise a crash would leave a file shorter than committed, and the next start
    /// would call it damaged.
    private func settleLengths(_ group: [WaitingBatch]) throws -> [String: Int64] {
        var lengths: [String: Int64] = [:]
        for folder in Set(group.flatMap { one in one.batch.dates.map { one.batch.folder($0) } }) {
            let file = ArchiveFile.path(in: folder)
            let committed = try ArchiveFiles.length(file, index) ?? 0
            let length = min(committed, fileSize("\(directory)/\(file)") ?? 0)
            if length < committed { try record(length, of: file) }
            lengths[folder] = length
        }
        return lengths
    }

    /// Appends the records that are new and counts the rest as duplicates.
    ///
    /// If it throws, even an HTTPError, part of the batch may already be written.
    private func append(
        _ one: WaitingBatch,
        _ files: BatchFiles,
        newFiles: Int64,
        at now: WallTime
    ) throws -> Receipt {
        var sounds = 0
        // "future" replaces the clock quality the device gave, so a clock that may be wrong never
        // sets it.
        let canMark = isClockSynced()
        var receipt = Receipt(accepted: 0, duplicates: 0)
        var ids = try KnownIDs(of: one.batch.device, index)
        try one.batch.forEachRecord(of: one.body, limit: workLimit()) { record in
            guard try ids.claim(record.id, index) else {
                receipt.duplicates += 1
                return
            }
            let isAhead = canMark && record.time.isAhead(of: now)
            try files.append(record, of: one.batch, one.body, isAhead: isAhead)
            receipt.accepted += 1
            if record.audio != nil { sounds += 1 }
        }
        mustHold(
            receipt.accepted + receipt.duplicates == one.batch.count,
            "each record of a batch is stored or known"
        )
        guard receipt.accepted > 0 else { return receipt }
        try ids.finish(index)
        try limits.count(
            one.batch,
            bytes: one.body.count,
            newFiles: newFiles,
            sounds: sounds,
            at: now,
            index
        )
        return receipt
    }

    private func record(_ length: Int64, of file: String) throws {
        try index.run("INSERT OR REPLACE INTO files VALUES (?,?)", file, length)
    }
}
