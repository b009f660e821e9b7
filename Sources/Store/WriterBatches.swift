// The writer's part for upload: freezing batches, and what becomes of them.
internal import Host

extension Writer {
    /// The batch of a stream that is to be sent next: the oldest frozen one.
    package func nextReady(_ stream: Stream) throws -> Batch? {
        guard counters[stream]?.ready ?? 0 > 0 else { return nil }
        return try batches("WHERE stream=? AND state=0 ORDER BY id LIMIT 1", Int64(stream.rawValue))
            .first
    }

    /// The oldest records of a stream that no batch has yet, or the newest ones; all of them are committed.
    package func pending(_ stream: Stream, newest: Bool = false) throws -> PendingRange? {
        guard let counters = counters[stream] else { return nil }
        let last = counters.next - 1
        let range =
            newest ? counters.frozen.newest(upTo: last) : counters.frozen.oldest(upTo: last)
        guard let range else { return nil }
        return PendingRange(
            stream: stream,
            first: range.lowerBound,
            last: range.upperBound,
            clockMap: clockMap.newest,
            synced: bootIsSynced
        )
    }

    /// Freezes the first records of a pending range, up to `last`, under a new key.
    ///
    /// nil when some of them are not pending any more.
    package func freeze(_ range: PendingRange, through last: Int64) throws -> Batch? {
        guard range.first <= last,
            counters[range.stream]?.frozen.isPending(range.first...last) ?? false
        else { return nil }
        let batch = try insert(
            Batch(
                id: 0,
                key: UUIDText.random(),
                stream: range.stream,
                first: range.first,
                last: last,
                state: .ready,
                attempts: 0,
                clockMap: range.clockMap,
                sentAt: clock.wall(),
                synced: range.synced,
                appVersion: appVersion,
                error: nil
            )
        )
        counters[range.stream]?.frozen.insert(range.first...last)
        counters[range.stream]?.ready += Int64(batch.records)
        return batch
    }

    /// The server has it.
    package func uploaded(_ batch: Batch) throws {
        try begin()
        try connection.run(
            "UPDATE batches SET state=1, error=NULL, done_boot=?, done_boottime=? WHERE id=?",
            boot,
            clock.now().milliseconds,
            batch.id
        )
        try connection.run(
            "UPDATE streams SET uploaded=uploaded+? WHERE id=?",
            Int64(batch.records),
            Int64(batch.stream.rawValue)
        )
        counters[batch.stream]?.ready -= Int64(batch.records)
        counters[batch.stream]?.uploaded += Int64(batch.records)
    }

    /// The server refused its records once more, in `words`.
    package func refused(_ batch: Batch, words: String) throws {
        try begin()
        let update = try connection.prepare(
            "UPDATE batches SET attempts=attempts+1, error=? WHERE id=?"
        )
        try update.bind(words, at: 1)
        try update.bind(batch.id, at: 2)
        try update.run()
    }

    /// Cuts a batch in two halves, each with a key of its own; attempts go with the records.
    package func split(_ batch: Batch) throws {
        guard batch.records > 1 else { return }
        let middle = batch.first + Int64(batch.records / 2) - 1
        try begin()
        try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        for (first, last) in [(batch.first, middle), (middle + 1, batch.last)] {
            var half = batch
            half.key = UUIDText.random()
            half.first = first
            half.last = last
            _ = try insert(half)
        }
    }

    /// Sets a batch aside for a person to look at, with the server's words, and says so in an event.
    package func quarantine(_ batch: Batch, words: String) throws {
        try begin()
        let update = try connection.prepare(
            """
            UPDATE batches SET state=2, error=?, done_boot=?, done_boottime=?, done_wall=? WHERE id=?
            """
        )
        let now = clock.stamp()
        try update.bind(words, at: 1)
        try update.bind(boot, at: 2)
        try update.bind(now.boot.milliseconds, at: 3)
        try update.bind(now.wall.milliseconds, at: 4)
        try update.bind(batch.id, at: 5)
        try update.run()
        counters[batch.stream]?.ready -= Int64(batch.records)
        counters[batch.stream]?.quarantined += Int64(batch.records)
        try insert(
            Event(
                .quarantined,
                source: "upload",
                detail: [
                    ("stream", .text("\(batch.stream)")),
                    ("records", .integer(Int64(batch.records))),
                    ("first_id", .text(recordIDs.id(batch.stream, batch.first))),
                    ("reason", .text(words)),
                ],
                stamp: clock.stamp()
            )
        )
    }

    /// Batches in quarantine, oldest first.
    package func quarantined() throws -> [Batch] { try batches("WHERE state=2 ORDER BY id") }

    func insert(_ batch: Batch) throws -> Batch {
        try begin()
        let statement = try connection.prepare(
            """
            INSERT INTO batches(uuid, app_version, error, stream, first, last, state, attempts, clock_map,
            sent_at, synced) VALUES (?,?,?,?,?,?,?,?,?,?,?)
            """
        )
        try statement.bind(batch.key, at: 1)
        try statement.bind(batch.appVersion, at: 2)
        if let error = batch.error { try statement.bind(error, at: 3) }
        let integers: [Int64] = [
            Int64(batch.stream.rawValue), batch.first, batch.last, batch.state.rawValue,
            Int64(batch.attempts), batch.clockMap, batch.sentAt.milliseconds, batch.synced ? 1 : 0,
        ]
        try statement.bind(integers, from: 4)
        try statement.run()
        var stored = batch
        stored.id = connection.lastInsertedRow
        return stored
    }

    func batches(_ condition: String, _ values: Int64...) throws -> [Batch] {
        let rows = try connection.prepare(
            """
            SELECT id, uuid, stream, first, last, state, attempts, clock_map, sent_at, synced,
            app_version, error FROM batches \(condition)
            """
        )
        try rows.bind(values, from: 1)
        var batches: [Batch] = []
        while try rows.step() {
            guard let stream = Stream(rawValue: Int(rows.required(2))),
                let state = Batch.State(rawValue: rows.required(5))
            else { continue }
            batches.append(
                Batch(
                    id: rows.required(0),
                    key: rows.text(1),
                    stream: stream,
                    first: rows.required(3),
                    last: rows.required(4),
                    state: state,
                    attempts: Int(rows.required(6)),
                    clockMap: rows.required(7),
                    sentAt: WallTime(milliseconds: rows.required(8)),
                    synced: rows.required(9) != 0,
                    appVersion: rows.text(10),
                    error: rows.isNull(11) ? nil : rows.text(11)
                )
            )
        }
        return batches
    }
}
