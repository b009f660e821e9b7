// The queue as a sync sees it: the only place of uploading that asks the writer.
import Host
import Queue
import Records
import SQLite

/// Everything that was accepted up to a moment.
struct AcceptedMark {
    fileprivate var ends: [Stream: Int64]

    /// The newest record of a stream that was accepted by then; 0 for none.
    func end(of stream: Stream) -> Int64 { ends[stream] ?? 0 }
}

/// Records of a stream cannot be read for now; nothing is wrong with the live database.
struct RecordsUnreadable: Error {
    var error: SQLiteError
    /// The records are of a database that was set aside; other records of the stream can be sent.
    var isOlder: Bool
}

/// The live database was replaced during a sync, so the sync knows nothing about its records any more.
struct DatabaseReplaced: Error {}

/// Questions to the queue and changes of its batches; used by the sync's thread.
final class QueueClient {
    private let queue: Queue
    /// nil until it is needed: the disk may refuse at the start.
    private var openReader: Reader?
    /// The database that the reader is of.
    private var generation = -1
    /// Which file of the live database this sync began with; a later file has another number.
    private var file = 0
    /// Older databases that this sync found it cannot read.
    private var unreadable: Set<Int64> = []
    /// Readers of databases that were set aside, by the number that the live database of this generation gives them.
    private var olderReader: (database: Int64, generation: Int, reader: Reader)?
    /// It could not be opened.
    private var olderFailed = false

    init(_ queue: Queue) {
        self.queue = queue
    }

    // MARK: Streams

    /// All streams in the order of their uploads, small ones first: sound must not keep a position waiting.
    var streams: [Stream] { queue.streams.streams }

    /// Whether the newest records of a stream may go before a backlog.
    func isSmall(_ stream: Stream) -> Bool { !(queue.streams[stream]?.isLarge ?? false) }

    // MARK: Questions

    /// What was accepted before now, on the disk when this returns.
    func mark() throws -> AcceptedMark {
        try queue.flushed()
        file = queue.leavings
        unreadable = []
        return AcceptedMark(
            ends: Dictionary(uniqueKeysWithValues: streams.map { ($0, queue.newest($0)) })
        )
    }

    /// Records up to a mark that still wait to be taken, in all streams; nil as long as nobody knows what is in a
    /// database that was set aside.
    func left(of mark: AcceptedMark) throws -> Int? {
        guard queue.leavings == file else { throw DatabaseReplaced() }
        guard !queue.setAside.contains(where: { $0.waiting == nil }) else { return nil }
        return try mark.ends.reduce(0) { try $0 + queue.unsent($1.key, through: $1.value) }
    }

    /// Whether records of a stream wait; true while the disk does not say.
    func waits(_ stream: Stream) -> Bool {
        (try? queue.unsent(stream, through: queue.newest(stream))) != 0
    }

    /// The frozen batch of a stream that is sent next, of those that satisfy `condition` and were not refused.
    func nextReady(_ stream: Stream, where condition: (Batch) -> Bool) throws -> Batch? {
        var others: Set<Int64> = []
        while let batch = try queue.nextReady(stream, unreadable: unreadable, except: others) {
            if condition(batch) { return batch }
            others.insert(batch.id)
        }
        return nil
    }

    /// Whether a batch fits into `limit` bytes of body; true where that changed it, as it has a record that cannot be read.
    ///
    /// The body that the destination makes for that is the one that it sends.
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

    /// The next uploaded batch, numbered above `number`, that is to be sent again.
    func nextResend(after number: Int64) throws -> Batch? {
        guard queue.leavings == file else { throw DatabaseReplaced() }
        return try queue.nextResend(after: number)
    }

    func pending(_ stream: Stream, newest: Bool = false) -> PendingRange? {
        queue.pending(stream, newest: newest, unreadable: unreadable)
    }

    /// A reader of a database; another one when that was replaced, or reading it failed.
    func reader(of database: Int64) throws -> Reader {
        guard database == 0 else { return try reader(ofOlder: database) }
        guard queue.leavings == file else { throw DatabaseReplaced() }
        let newest = queue.generation
        if let openReader, newest == generation { return openReader }
        // Noted before it is opened: if opening fails, that is an error of this database.
        openReader = nil
        generation = newest
        let reader = try queue.reader()
        // The file may have been replaced while it was opened.
        guard queue.leavings == file else { throw DatabaseReplaced() }
        openReader = reader
        return reader
    }

    private func reader(ofOlder database: Int64) throws -> Reader {
        let newest = queue.generation
        if let olderReader, olderReader.database == database, olderReader.generation == newest {
            return olderReader.reader
        }
        // A database that takes the place of the live one gives its number to another file.
        guard queue.leavings == file else { throw DatabaseReplaced() }
        olderFailed = true
        let reader = try queue.reader(of: database)
        olderFailed = false
        guard queue.leavings == file else { throw DatabaseReplaced() }
        olderReader = (database, newest, reader)
        return reader
    }

    /// Whether another database takes the place of the live one, or has taken it, for that.
    static func isDamage(_ error: any Error) -> Bool {
        // A table that is not as it should be is damage of the schema.
        guard let error = error as? SQLiteError else { return error is DatabaseReplaced }
        return error.isDamage || error.isForeign
    }

    /// Reading or writing failed: a damaged database is replaced, and the next sync reads the new one.
    func failed(_ error: any Error) {
        if error is SQLiteError, Self.isDamage(error) {
            queue.reportDamage("\(error)", generation: generation)
        }
        generation = -1
        // Its file may have been taken away.
        if olderFailed { queue.checkSetAside() }
        olderFailed = false
        olderReader = nil
    }

    var clockIsSynced: Bool { queue.clockIsSynced }

    /// Whether more is known of the time than when a batch was frozen: nothing, or what was wrong.
    func isDatedBetter(_ batch: Batch) -> Bool {
        !batch.synced && clockIsSynced
            || batch.clockMap >= 0 && batch.clockMap < queue.clockCorrection
    }

    /// nil as long as nobody knows it.
    func rightTime(at stamp: Stamp) -> WallTime? { queue.rightTime(at: stamp) }

    // MARK: Records that cannot be read

    /// Reads records for a batch.
    ///
    /// A record that is missing or damaged is never sent.
    ///
    /// Returns nil after entering such a record as lost: the range or batch is a different one then.
    func reading<Value>(
        _ partition: Partition,
        _ range: ClosedRange<Int64>,
        lose: (Int64) throws -> Void,
        _ body: (Reader) throws -> Value
    ) throws -> Value? {
        let generation = queue.generation
        do {
            return try body(try reader(of: partition.database))
        } catch let damage as LiveDatabaseDamaged {
            queue.reportDamage(damage.why, generation: generation)
            throw DatabaseReplaced()
        } catch let missing as RecordMissing where range.contains(missing.sequence) {
            try lose(missing.sequence)
        } catch let error as SQLiteError
            where (error.isDamage || error.isForeign) && !partition.isLive
        {
            // `isForeign`: damage changed the columns of a table. The live database is not affected.
            let bad = try? range.first { try isDamaged($0, partition) }
            guard let bad else { throw unreadable(error, partition) }
            try lose(bad)
        } catch let error as SQLiteError where !error.isDamage {
            if partition.isLive { throw unreadable(error, partition) }
            // A person deleted its file: what waited there is entered as lost.
            let isGone = try queue.perform { try $0.giveUpIfGone(partition.database) }
            guard isGone else { throw unreadable(error, partition) }
        }
        return nil
    }

    /// Throws what the disk does not give just now: that is no damage.
    private func isDamaged(_ sequence: Int64, _ partition: Partition) throws -> Bool {
        do {
            try reader(of: partition.database).check(partition.stream, sequence...sequence)
            return false
        } catch is RecordMissing {
            return true
        } catch let error as SQLiteError where error.isDamage || error.isForeign {
            return true
        }
    }

    /// The error for records of one stream that cannot be read now; the readers are opened again.
    private func unreadable(_ error: SQLiteError, _ partition: Partition) -> RecordsUnreadable {
        // A damaged schema is no error of the disk: the records are lost.
        if partition.isLive, error.isForeign {
            queue.reportDamage("\(error)", generation: generation)
        }
        let problem = RecordsUnreadable(error: error, isOlder: !partition.isLive)
        failed(problem)
        if problem.isOlder { unreadable.insert(partition.database) }
        return problem
    }

    /// A pending record cannot be read: it is entered as lost.
    func lose(_ partition: Partition, _ sequence: Int64) throws {
        try performInSameFile { try $0.lose(partition, sequence...sequence) }
    }

    /// A record of a frozen batch cannot be read: those beside it become batches of their own.
    func lose(_ sequence: Int64, of batch: Batch) throws {
        try performInSameFile { try $0.lose(sequence, of: batch) }
    }

    /// In another file a number is that of another record.
    private func performInSameFile(_ body: @escaping @Sendable (Writer) throws -> Void) throws {
        let (queue, file) = (queue, file)
        try queue.perform { writer in
            guard queue.leavings == file else { throw DatabaseReplaced() }
            try body(writer)
        }
    }

    // MARK: Changes

    /// nil when records of the range were deleted meanwhile.
    func freeze(_ range: PendingRange, through last: Int64) throws -> Batch? {
        try queue.perform { try $0.freeze(range, through: last) }
    }

    func release(_ batch: Batch) throws { try queue.perform { try $0.release(batch) } }

    func uploaded(_ batch: Batch) throws { try queue.perform { try $0.uploaded(batch) } }

    /// Whether a batch that was sent again, or cannot be, has lost its mark.
    @discardableResult
    func resent(_ batch: Batch) throws -> Bool {
        let (queue, file) = (queue, file)
        return try queue.perform { writer in
            // In another file the number is that of another batch.
            guard queue.leavings == file else { throw DatabaseReplaced() }
            return try writer.resent(batch)
        }
    }

    @discardableResult
    func split(_ batch: Batch, message: String? = nil) throws -> [Batch] {
        try queue.perform { try $0.split(batch, message: message) }
    }

    func refused(_ batch: Batch, message: String) throws {
        try queue.perform { try $0.refused(batch, message: message) }
    }

    func quarantine(_ batch: Batch, message: String) throws {
        try queue.perform { writer in
            try writer.refused(batch, message: message)
            try writer.quarantine(batch, message: message)
        }
    }

    /// Tells in one event of what a sync set aside.
    func noteQuarantined(_ batches: [Batch], message: String) throws {
        try queue.perform { try $0.noteQuarantined(batches, message: message) }
    }

    func tell(_ event: Event) { queue.accept(event) }

    func note(_ traffic: Traffic) throws { try queue.perform { try $0.note(traffic) } }
}
