// The writer's part for upload: freezing batches, and what becomes of them.
import Host
import Records
import SQLite
import StatusBoard

extension Writer {
    /// Freezes the first records of a pending range, up to `last`, under a new key.
    ///
    /// nil when some of them are not pending any more.
    package func freeze(_ range: PendingRange, through last: Int64) throws -> Batch? {
        guard range.first <= last, last < memory[range.partition].next,
            memory[range.partition].frozen.isPending(range.first...last)
        else { return nil }
        let batch = try insert(
            Batch(
                id: 0,
                key: newKey(),
                stream: range.stream,
                first: range.first,
                last: last,
                state: .ready,
                attempts: 0,
                // The range may be of a database before this one, which had more entries.
                clockMap: min(range.clockMap, clockMap.newest),
                sentAt: rightTime,
                synced: range.synced,
                appVersion: settings.appVersion,
                error: nil,
                database: range.database
            )
        )
        memory[range.partition].frozen.insert(range.first...last)
        memory[range.partition].ready += Int64(batch.records)
        return batch
    }

    /// Has the records of a batch wait again, so that they are dated as the clock map knows by then.
    ///
    /// Only for a batch of which nothing was ever sent: what a server may have comes out the same at each try.
    package func release(_ batch: Batch) throws {
        guard try isReady(batch) else { return }
        try begin()
        try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        memory[batch.partition].frozen.remove(batch.first...batch.last)
        memory[batch.partition].ready -= Int64(batch.records)
    }

    func newKey() -> String { UUIDText.random(settings.random(), settings.random()) }

    /// The server has it.
    ///
    /// False, and nothing changes, when that was known before or the batch was split, dropped or requeued.
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
            // Nothing of an older database is kept for a retention: its file goes as a whole.
            try connection.run("DELETE FROM batches WHERE id=?", batch.id)
            try settle(batch.partition, batch.first...batch.last)
        }
        try subtractPending(batch.partition, batch.first...batch.last)
        memory[batch.partition].ready -= Int64(batch.records)
        memory[batch.partition].uploaded += Int64(batch.records)
        return true
    }

    /// Whether a batch is still waiting for its verdict.
    private func isReady(_ batch: Batch) throws -> Bool {
        let held = try batches("WHERE id=?", batch.id).first
        return held?.key == batch.key && held?.state == .ready
    }

    /// The server refused its record once more, in `words`.
    package func refused(_ batch: Batch, message: String) throws {
        guard try isReady(batch) else { return }
        try begin()
        let update = try connection.prepare(
            "UPDATE batches SET attempts=attempts+1, error=? WHERE id=?"
        )
        try update.bind(message, at: 1)
        try update.bind(batch.id, at: 2)
        try update.run()
    }

    /// Cuts a batch in two halves, each with a key of its own; attempts are counted for single records only.
    ///
    /// The records keep their ids and their dates, for a server may have some of them. Returns the halves; none where
    /// the batch was judged, or changed, before.
    @discardableResult
    package func split(_ batch: Batch, message: String? = nil) throws -> [Batch] {
        guard batch.records > 1, try isReady(batch) else { return [] }
        let middle = batch.first + Int64(batch.records / 2) - 1
        try begin()
        try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        return try [(batch.first, middle), (middle + 1, batch.last)].map { first, last in
            var half = batch
            half.key = newKey()
            half.first = first
            half.last = last
            half.attempts = 0
            half.error = message ?? batch.error
            return try insert(half)
        }
    }

    /// Sets a batch aside for a person to look at, with the server's message.
    package func quarantine(_ batch: Batch, message: String) throws {
        guard try isReady(batch) else { return }
        try begin()
        let update = try connection.prepare(
            """
            UPDATE batches SET state=2, error=?, done_boot=?, done_boottime=?, done_wall=? WHERE id=?
            """
        )
        let now = clock.stamp()
        try update.bind(message, at: 1)
        try update.bind(boot, at: 2)
        try update.bind(now.boot.milliseconds, at: 3)
        try update.bind(now.wall.milliseconds, at: 4)
        try update.bind(batch.id, at: 5)
        try update.run()
        try subtractPending(batch.partition, batch.first...batch.last)
        memory[batch.partition].ready -= Int64(batch.records)
        memory[batch.partition].quarantined += Int64(batch.records)
    }

    /// Tells in one event of batches of a stream that were set aside, with the server's last message.
    package func noteQuarantined(_ batches: [Batch], message: String) throws {
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

    /// The keys of all batches that wait for their verdict.
    package func readyKeys() throws -> Set<String> {
        let rows = try connection.prepare("SELECT uuid FROM batches WHERE state=0")
        var keys: Set<String> = []
        while try rows.step() { keys.insert(rows.text(0)) }
        return keys
    }

    /// Batches in quarantine, oldest first.
    package func quarantined() throws -> [Batch] { try batches("WHERE state=2 ORDER BY id") }

    func insert(_ batch: Batch) throws -> Batch {
        try begin()
        let statement = try connection.prepare(
            """
            INSERT INTO batches(uuid, app_version, error, stream, first, last, state, attempts, clock_map,
            sent_at, synced, database, id) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)
            """
        )
        try statement.bind(batch.key, at: 1)
        try statement.bind(batch.appVersion, at: 2)
        if let error = batch.error { try statement.bind(error, at: 3) }
        let integers: [Int64] = [
            Int64(batch.stream.number), batch.first, batch.last, batch.state.rawValue,
            Int64(batch.attempts), batch.clockMap, batch.sentAt.milliseconds, batch.synced ? 1 : 0,
            batch.database, memory.numbers.batches,
        ]
        try statement.bind(integers, from: 4)
        try statement.run()
        var stored = batch
        stored.id = memory.numbers.batches
        memory.numbers.batches += 1
        return stored
    }

    func batches(_ condition: String, _ values: Int64...) throws -> [Batch] {
        let rows = try connection.prepare("\(Batch.columns) \(condition)")
        try rows.bind(values, from: 1)
        var batches: [Batch] = []
        while try rows.step() {
            if let batch = try Batch(rows, streams, memory.older) { batches.append(batch) }
        }
        return batches
    }
}

extension Batch {
    static let columns = """
        SELECT id, uuid, stream, first, last, state, attempts, clock_map, sent_at, synced,
        app_version, error, database FROM batches
        """

    /// From a row of `columns`; nil for a stream or a state that is not known.
    ///
    /// Throws damage for records that cannot be.
    init?(
        _ rows: borrowing Statement,
        _ streams: StreamList,
        _ older: [Partition: StreamCounters]
    ) throws {
        let number = Int(rows.required(2))
        let database = rows.required(12)
        let named = older.keys.first { $0.database == database && $0.stream.number == number }
        guard let stream = named?.stream ?? streams[number: number]?.stream,
            let state = State(rawValue: rows.required(5))
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
            database: database
        )
    }
}

extension Statement {
    /// The first and the last of some records, in two columns.
    ///
    /// Throws damage for what cannot be.
    func recordRange(_ column: Int32) throws -> ClosedRange<Int64> {
        let (first, last) = (required(column), required(column + 1))
        guard first > 0, first <= last, last.isPlausible else {
            let message = "records \(first) to \(last)"
            throw SQLiteError(code: 11, message: message, statement: "")
        }
        return first...last
    }
}
