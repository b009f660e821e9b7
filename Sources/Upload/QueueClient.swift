// Reads the queue during a sync, and notices when the database was replaced under it.
import Host
import Queue
import Records
import SQLite

/// Records of a stream cannot be read for now; the live database is intact.
struct UnreadableRecordsError: Error {
    var error: SQLiteError
    /// The records are in a quarantined database; other records of the stream can be sent.
    var isOlder: Bool
}

/// The live database was replaced during a sync, so the sync's record numbers are no longer valid.
struct DatabaseReplacedError: Error {}

/// Reads batches and records for a sync; used by the sync's thread only.
///
/// It keeps one `Reader` open on the live database and one on a quarantined database, and opens
/// them again when the queue moved to another file. A record number means something in one file
/// only, so queries with a number throw `DatabaseReplacedError` once the live file was replaced.
final class QueueClient {
    private let queue: Queue
    /// nil until it is needed: the disk may fail at the start.
    private var openReader: Reader?
    /// The generation of the database that the reader belongs to.
    private var generation = -1
    /// The number of the live database file when this sync began; each replacement increases it.
    private var file = 0
    /// Older databases that this sync could not read.
    private var unreadable: Set<Int64> = []
    /// A reader of a quarantined database, by the number that the live database of this generation
    /// gives it.
    private var olderReader: (database: Int64, generation: Int, reader: Reader)?
    /// The older database could not be opened.
    private var olderFailed = false

    init(_ queue: Queue) {
        self.queue = queue
    }

    // MARK: Queries

    /// Commits everything accepted before now; returns the position reached in each stream.
    func mark() throws -> [Stream: Int64] {
        try queue.flushed()
        file = queue.leavings
        unreadable = []
        let newest = queue.streams.streams.map { ($0, queue.newest($0)) }
        return Dictionary(uniqueKeysWithValues: newest)
    }

    /// Returns how many records up to a mark are still pending, over all streams.
    ///
    /// Returns nil until the contents of every quarantined database are known.
    func left(of mark: [Stream: Int64]) throws -> Int? {
        guard queue.leavings == file else { throw DatabaseReplacedError() }
        guard !queue.setAside.contains(where: { $0.waiting == nil }) else { return nil }
        let left = try mark.reduce(0) { try $0 + queue.unsent($1.key, through: $1.value) }
        invariant(left >= 0, "records are left or none")
        return left
    }

    /// Returns whether records of a stream are pending; true if the disk fails.
    func waits(_ stream: Stream) -> Bool {
        (try? queue.unsent(stream, through: queue.newest(stream))) != 0
    }

    /// Returns the next frozen batch of a stream that satisfies `condition` and was not refused.
    func nextReady(_ stream: Stream, where condition: (Batch) -> Bool) throws -> Batch? {
        var others: Set<Int64> = []
        while let batch = try queue.nextReady(stream, unreadable: unreadable, except: others) {
            if condition(batch) { return batch }
            others.insert(batch.id)
        }
        return nil
    }

    /// Returns whether a batch fits into `limit` bytes of body.
    ///
    /// Also true if that changed the batch, because one of its records cannot be read. The
    /// destination sends the body that it makes for this check.
    func fits(_ batch: Batch, _ limit: Int, _ destination: any Destination) throws -> Bool {
        let last = try reading(
            batch.partition,
            batch.first...batch.last,
            lose: { try lose($0, of: batch) },
            { try destination.lastRecord(of: batch.range, limit: limit, from: $0) }
        )
        return last == nil || last == batch.last
    }

    func nextRefused(_ stream: Stream, after number: Int64) throws -> Batch? {
        try queue.nextRefused(stream, after: number, unreadable: unreadable)
    }

    /// Returns the next uploaded batch, numbered above `number`, that is to be resent.
    func nextResend(after number: Int64) throws -> Batch? {
        guard queue.leavings == file else { throw DatabaseReplacedError() }
        return try queue.nextResend(after: number)
    }

    func pending(
        _ stream: Stream,
        newest: Bool = false,
        through end: Int64 = .max
    ) -> PendingRange? {
        queue.pending(stream, newest: newest, through: end, unreadable: unreadable)
    }

    /// Returns the sound to be sent next, at its end; nil if its order is that of other streams.
    func wantedSound(through end: Int64) -> PendingRange? {
        queue.wantedSound(through: end)
    }

    /// No sound is uploaded, whatever waits.
    var keepsSound: Bool { queue.soundUpload.mode == .none }

    /// Not all sound is uploaded: that of the newest marks goes first.
    var choosesSound: Bool { queue.soundUpload.mode != .all }

    /// Makes a few of the newest held chunks pending; returns false if there are none.
    func releaseNewest(_ count: Int64) throws -> Bool {
        try queue.perform { try $0.releaseNewest(count) }
    }

    /// Returns a reader of a database; a new one if the database was replaced or reading failed.
    func reader(of database: Int64) throws -> Reader {
        guard database == 0 else { return try reader(ofOlder: database) }
        guard queue.leavings == file else { throw DatabaseReplacedError() }
        let newest = queue.generation
        if let openReader, newest == generation { return openReader }
        // Set before opening: if that fails, the error belongs to this database.
        openReader = nil
        generation = newest
        let reader = try queue.reader()
        // The file may have been replaced during opening.
        guard queue.leavings == file else { throw DatabaseReplacedError() }
        openReader = reader
        return reader
    }

    private func reader(ofOlder database: Int64) throws -> Reader {
        let newest = queue.generation
        if let olderReader, olderReader.database == database, olderReader.generation == newest {
            return olderReader.reader
        }
        // A database that replaces the live one gives this number to another file.
        guard queue.leavings == file else { throw DatabaseReplacedError() }
        olderFailed = true
        let reader = try queue.reader(of: database)
        olderFailed = false
        guard queue.leavings == file else { throw DatabaseReplacedError() }
        olderReader = (database, newest, reader)
        return reader
    }

    /// Returns whether an error means that the live database is being, or has been, replaced.
    static func isDamage(_ error: any Error) -> Bool {
        // A table with an unexpected form is damage of the schema.
        guard let error = error as? SQLiteError else { return error is DatabaseReplacedError }
        return error.isDamage || error.isForeign
    }

    /// Handles a read or write error: a damaged database is replaced, and the next sync reads the
    /// new one.
    func failed(_ error: any Error) {
        if error is SQLiteError, Self.isDamage(error) {
            queue.reportDamage("\(error)", generation: generation)
        }
        generation = -1
        // Its file may have been removed.
        if olderFailed { queue.checkSetAside() }
        olderFailed = false
        olderReader = nil
    }

    /// Returns whether the time is known better than when the batch was frozen: known at all, or
    /// corrected.
    func isDatedBetter(_ batch: Batch) -> Bool {
        !batch.synced && queue.clockIsSynced
            || batch.clockMap >= 0 && batch.clockMap < queue.clockCorrection
    }

    // MARK: Unreadable records

    /// Reads records for a batch.
    ///
    /// A record that is missing or damaged is never sent. Returns nil after recording such a record
    /// as lost: the range or batch has changed then.
    func reading<Value>(
        _ partition: Partition,
        _ range: ClosedRange<Int64>,
        lose: (Int64) throws -> Void,
        _ body: (Reader) throws -> Value
    ) throws -> Value? {
        let generation = queue.generation
        do {
            return try body(try reader(of: partition.database))
        } catch let damage as DatabaseDamagedError {
            queue.reportDamage(damage.why, generation: generation)
            throw DatabaseReplacedError()
        } catch let missing as RecordMissingError where range.contains(missing.sequence) {
            try lose(missing.sequence)
        } catch let error as SQLiteError
            where (error.isDamage || error.isForeign) && !partition.isLive
        {
            // `isForeign`: damage changed the columns of a table. The live database is not
            // affected.
            let bad = try? range.first { try isDamaged($0, partition) }
            guard let bad else { throw unreadable(error, partition) }
            try lose(bad)
        } catch let error as SQLiteError where !error.isDamage {
            if partition.isLive { throw unreadable(error, partition) }
            // A person deleted its file: record its pending records as lost.
            let isGone = try queue.perform { try $0.giveUpIfGone(partition.database) }
            guard isGone else { throw unreadable(error, partition) }
        }
        return nil
    }

    /// Returns whether one record is damaged; throws temporary disk errors, which are not damage.
    private func isDamaged(_ sequence: Int64, _ partition: Partition) throws -> Bool {
        do {
            try reader(of: partition.database).check(partition.stream, sequence...sequence)
            return false
        } catch is RecordMissingError {
            return true
        } catch let error as SQLiteError where error.isDamage || error.isForeign {
            return true
        }
    }

    /// Returns the error for records of a stream that cannot be read now; the readers are reopened.
    private func unreadable(_ error: SQLiteError, _ partition: Partition) -> UnreadableRecordsError
    {
        // A damaged schema is not a disk error: the records are lost.
        if partition.isLive, error.isForeign {
            queue.reportDamage("\(error)", generation: generation)
        }
        let problem = UnreadableRecordsError(error: error, isOlder: !partition.isLive)
        failed(problem)
        if problem.isOlder { unreadable.insert(partition.database) }
        return problem
    }

    /// Records an unreadable pending record as lost.
    func lose(_ partition: Partition, _ sequence: Int64) throws {
        try performInSameFile { try $0.lose(partition, sequence...sequence) }
    }

    /// Records an unreadable record of a frozen batch as lost; the records beside it become
    /// separate batches.
    func lose(_ sequence: Int64, of batch: Batch) throws {
        try performInSameFile { try $0.lose(sequence, of: batch) }
    }

    /// Runs a change only in the same database file: in another one a number means another record
    /// or batch.
    private func performInSameFile<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        let (queue, file) = (queue, file)
        return try queue.perform { writer in
            guard queue.leavings == file else { throw DatabaseReplacedError() }
            return try body(writer)
        }
    }

    // MARK: Changes

    /// Freezes a pending range; returns nil if records of it were deleted in between.
    func freeze(_ range: PendingRange, through last: Int64) throws -> Batch? {
        try queue.perform { try $0.freeze(range, through: last) }
    }

    /// Clears the resend mark of a batch; returns whether it had one.
    @discardableResult
    func resent(_ batch: Batch) throws -> Bool {
        try performInSameFile { try $0.resent(batch) }
    }

    @discardableResult
    func split(_ batch: Batch, message: String? = nil) throws -> [Batch] {
        try queue.perform { try $0.split(batch, message: message) }
    }
}

extension Queue {
    /// Returns whether the newest records of a stream may go before a backlog.
    func isSmall(_ stream: Stream) -> Bool { !(streams[stream]?.isLarge ?? false) }
}
