// Freezes batches and stores the results of their upload.
import Host
import Records
import SQLite
import StatusBoard

extension Writer {
    /// Freezes the first records of a pending range, up to `last`, into a batch with a new key.
    ///
    /// Returns nil if some of them are no longer pending.
    package func freeze(_ range: PendingRange, through last: Int64) throws -> Batch? {
        guard range.first <= last, last < memory[range.partition].next,
            memory[range.partition].frozen.isPending(range.first...last)
        else { return nil }
        invariant(
            range.form != .columns || !(streams[range.stream]?.isLarge ?? false),
            "sound is not sent in columns"
        )
        let batch = try insert(
            Batch(
                id: 0,
                key: newKey(),
                stream: range.stream,
                first: range.first,
                last: last,
                state: .ready,
                attempts: 0,
                // The range may come from an earlier database, whose clock map had more entries.
                clockMap: min(range.clockMap, clockMap.newest),
                sentAt: rightTime,
                synced: range.synced,
                appVersion: settings.appVersion,
                error: nil,
                form: range.form ?? .rows,
                database: range.database
            )
        )
        memory[range.partition].frozen.insert(range.first...last)
        if range.partition == Partition(.audio) { memory.asked.remove(range.first...last) }
        memory[range.partition].ready += Int64(batch.records)
        return batch
    }

    /// Returns a batch's records to pending, so that they are dated by the newest clock map.
    ///
    /// Only for a batch that was never sent: a server may have records of one that was, and must
    /// get the same bytes on each retry.
    package func release(_ batch: Batch) throws {
        guard try isReady(batch) else { return }
        try begin()
        try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        memory[batch.partition].frozen.remove(batch.first...batch.last)
        memory[batch.partition].ready -= Int64(batch.records)
    }

    func newKey() -> String { UUIDText.random(settings.random(), settings.random()) }

    /// Marks a batch as uploaded.
    ///
    /// Returns false and changes nothing if it already was, or was split, dropped or requeued.
    @discardableResult
    package func uploaded(_ batch: Batch) throws -> Bool {
        guard try isReady(batch) else { return false }
        try begin()
        if batch.partition.isLive {
            try connection.run(
                "UPDATE batches SET state=1, error=NULL, done_boot=?, done_boottime=? WHERE id=?",
                boot,
                clock.now().milliseconds,
                batch.id
            )
        } else {
            // An older database has no retention: its file is deleted as a whole.
            try connection.run("DELETE FROM batches WHERE id=?", batch.id)
            try settle(batch.partition, batch.first...batch.last)
        }
        try subtractPending(batch.partition, batch.first...batch.last)
        memory[batch.partition].ready -= Int64(batch.records)
        memory[batch.partition].uploaded += Int64(batch.records)
        return true
    }

    /// Whether a batch still waits for the server's verdict.
    private func isReady(_ batch: Batch) throws -> Bool {
        guard let held = try batches("WHERE id=?", batch.id).first, held.key == batch.key,
            held.state == .ready
        else { return false }
        try requireIntact(
            held.first == batch.first && held.last == batch.last && held.form == batch.form,
            "batch \(batch.id) is another one under its key"
        )
        return true
    }

    /// Counts another rejection of a single-record batch, with the server's message.
    package func refused(_ batch: Batch, message: String) throws {
        guard try isReady(batch) else { return }
        try begin()
        let update = "UPDATE batches SET attempts=attempts+1, error=? WHERE id=?"
        try connection.run(update, message, batch.id)
    }

    /// Splits a batch into two halves with new keys; attempts count for single records only.
    ///
    /// One of columns becomes one of rows instead: the server may refuse only the form. The records
    /// keep their ids and dates, because a server may already have some. Returns the parts, or none
    /// if the batch was already settled or changed.
    @discardableResult
    package func split(_ batch: Batch, message: String? = nil) throws -> [Batch] {
        guard batch.canBeSplit, try isReady(batch) else { return [] }
        let middle = batch.first + Int64(batch.records / 2) - 1
        let parts =
            batch.form == .columns
            ? [batch.first...batch.last] : [batch.first...middle, (middle + 1)...batch.last]
        mustHold(
            parts.reduce(0) { $0 + $1.count } == batch.records,
            "the parts of a batch have its records"
        )
        try begin()
        try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        return try parts.map { records in
            var part = batch
            part.key = newKey()
            (part.first, part.last) = (records.lowerBound, records.upperBound)
            part.form = .rows
            part.attempts = 0
            part.error = message ?? batch.error
            return try insert(part)
        }
    }

    /// Makes rows, under new keys, of all batches in columns that wait for a verdict.
    package func makeRowsOfColumns() throws {
        for batch in try batches("WHERE state=0 AND form=1") { try split(batch) }
    }

    /// Moves a batch to quarantine, with the server's message.
    package func quarantine(_ batch: Batch, message: String) throws {
        guard try isReady(batch) else { return }
        try begin()
        let now = clock.stamp()
        try connection.run(
            """
            UPDATE batches SET state=2, error=?, done_boot=?, done_boottime=?, done_wall=? WHERE id=?
            """,
            message,
            boot,
            now.boot.milliseconds,
            now.wall.milliseconds,
            batch.id
        )
        try subtractPending(batch.partition, batch.first...batch.last)
        memory[batch.partition].ready -= Int64(batch.records)
        memory[batch.partition].quarantined += Int64(batch.records)
    }

    /// Writes one event for the quarantined batches of a stream, with the server's last message.
    package func recordQuarantined(_ batches: [Batch], message: String) throws {
        guard let first = batches.first else { return }
        try insert(
            Event(
                .quarantined,
                source: "upload",
                detail: [
                    ("stream", .text("\(first.stream)")),
                    ("records", .integer(batches.reduce(0) { $0 + Int64($1.records) })),
                    ("first_id", .text(try id(first.partition, first.first))),
                    ("reason", .text(message)), ("code", .text(ErrorCode.server.rawValue)),
                ],
                stamp: clock.stamp()
            )
        )
    }

    /// Returns the keys of all batches that wait for the server's verdict.
    package func readyKeys() throws -> Set<String> {
        let rows = try connection.prepare("SELECT uuid FROM batches WHERE state=0")
        return Set(try rows.compactMap { $0.text(0) })
    }

    /// Returns the batches in quarantine, oldest first.
    package func quarantined() throws -> [Batch] { try batches("WHERE state=2 ORDER BY id") }

    func insert(_ batch: Batch) throws -> Batch {
        try requireIntact(
            batch.last < memory[batch.partition].next,
            "\(batch.stream): record \(batch.last) of a batch was never assigned"
        )
        mustHold(batch.first <= batch.last, "a batch has records")
        try requireIntact(
            batch.clockMap <= clockMap.newest,
            "a batch is dated by entry \(batch.clockMap) of the clock map, which is not there"
        )
        try begin()
        let statement = try connection.prepare(
            """
            INSERT INTO batches(uuid, app_version, error, stream, first, last, state, attempts, clock_map,
            sent_at, synced, database, id, form) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)
            """
        )
        let values: [(any SQLValue)?] = [
            batch.key, batch.appVersion, batch.error, batch.stream.number, batch.first, batch.last,
            batch.state.rawValue, batch.attempts, batch.clockMap, batch.sentAt.milliseconds,
            batch.synced ? 1 : 0, batch.database, memory.numbers.batches,
            batch.form.rawValue,
        ]
        try statement.bind(values, from: 1)
        try statement.run()
        var stored = batch
        stored.id = memory.numbers.batches
        memory.numbers.batches += 1
        return stored
    }

    func batches(_ condition: String, _ values: Int64...) throws -> [Batch] {
        let rows = try connection.prepare("\(Batch.columns) \(condition)")
        try rows.bind(values, from: 1)
        return try rows.compactMap { try Batch($0, streams, memory.older) }
    }
}

extension Batch {
    static let columns = """
        SELECT id, uuid, stream, first, last, state, attempts, clock_map, sent_at, synced,
        app_version, error, database, form FROM batches
        """

    /// Reads a row of `columns`; nil if the stream or the state is unknown.
    ///
    /// Throws damage for impossible record numbers.
    init?(
        _ rows: borrowing Statement,
        _ streams: StreamList,
        _ older: [Partition: StreamCounters]
    ) throws {
        let number = Int(rows.required(2))
        let database = rows.required(12)
        let named = older.keys.first { $0.database == database && $0.stream.number == number }
        guard let stream = named?.stream ?? streams[number: number]?.stream,
            let state = State(rawValue: rows.required(5)),
            let form = Form(rawValue: rows.required(13))
        else { return nil }
        let range = try rows.recordRange(3)
        self.init(
            id: rows.required(0),
            key: rows.text(1),
            stream: stream,
            first: range.lowerBound,
            last: range.upperBound,
            state: state,
            attempts: Int(rows.required(6)),
            clockMap: rows.required(7),
            sentAt: WallTime(milliseconds: rows.required(8)),
            synced: rows.required(9) != 0,
            appVersion: rows.text(10),
            error: rows.isNull(11) ? nil : rows.text(11),
            form: form,
            database: database
        )
    }
}

extension Statement {
    /// Reads the first and last record number from two columns.
    ///
    /// Throws damage for impossible values.
    func recordRange(_ column: Int32) throws -> ClosedRange<Int64> {
        let (first, last) = (required(column), required(column + 1))
        try requireIntact(
            first > 0 && first <= last && last.isPlausible,
            "records \(first) to \(last)"
        )
        return first...last
    }
}
