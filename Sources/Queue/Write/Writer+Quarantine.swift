// Lists, requeues and drops records in quarantine at a person's request.
import Host
import Records
import SQLite

extension Writer {
    /// Returns at most `limit` batches in quarantine, oldest first.
    ///
    /// `Reader.quarantine` is for display.
    package func quarantined(limit: Int64) throws -> [Batch] {
        try batches("WHERE state=2 ORDER BY id LIMIT ?", limit)
    }

    /// Returns the batch in quarantine with this number.
    package func quarantined(number: Int64) throws -> Batch? {
        try batches("WHERE state=2 AND id=?", number).first
    }

    /// Returns the batch in quarantine with this key.
    package func quarantined(key: String) throws -> Batch? {
        try connection.integer("SELECT id FROM batches WHERE state=2 AND uuid=?", key)
            .flatMap { try quarantined(number: $0) }
    }

    /// Returns the id of a record as sent to the server; empty if its record is deleted.
    ///
    /// The seeds of ids are deleted with the records: reading a missing one would look like damage.
    func id(_ partition: Partition, _ sequence: Int64) throws -> String {
        guard try capture(of: sequence, in: partition) != nil else { return "" }
        return try RecordIDs(connection, partition.stream, sequence...sequence).id(sequence)
    }

    /// Requeues a quarantined batch: new key, no attempts, dated by the newest clock map.
    ///
    /// Returns nil if the batch is no longer in quarantine.
    package func requeue(_ batch: Batch) throws -> Batch? {
        guard let held = try quarantined(number: batch.id), held.key == batch.key else {
            return nil
        }
        try begin()
        try connection.run("DELETE FROM batches WHERE id=?", held.id)
        var fresh = held
        fresh.key = UUIDText.random(settings.random(), settings.random())
        fresh.state = .ready
        fresh.attempts = 0
        fresh.error = nil
        fresh.clockMap = clockMap.newest
        fresh.synced = memory.bootIsSynced
        fresh.sentAt = rightTime
        fresh.appVersion = settings.appVersion
        fresh = try insert(fresh)
        mustHold(fresh.key != held.key, "a batch that is sent again has a new key")
        memory[held.partition].quarantined -= Int64(held.records)
        memory[held.partition].ready += Int64(held.records)
        memory[held.partition].pendingBytes += try storedBytes(
            held.partition,
            held.first...held.last
        )
        return fresh
    }

    /// Deletes the records of a quarantined batch, records the loss and writes an event.
    ///
    /// Returns false if the batch is no longer in quarantine.
    package func drop(_ batch: Batch) throws -> Bool {
        guard let held = try quarantined(number: batch.id), held.key == batch.key else {
            return false
        }
        try begin()
        let range = held.first...held.last
        let firstID = try id(held.partition, held.first)
        try countRemoved(held.partition, range, .discarded) { from, to in
            [
                ("stream", .text("\(held.stream)")), ("kind", .text(LossKind.discarded.rawValue)),
                ("records", .integer(Int64(held.records))), ("from", from), ("to", to),
                ("first_id", .text(firstID)),
                ("reason", .text(held.error ?? "")),
            ]
        }
        memory[held.partition].quarantined -= Int64(held.records)
        try connection.run("DELETE FROM batches WHERE id=?", held.id)
        try remove(held.partition, range)
        return true
    }

    /// Records a loss and reports it in a separate event.
    ///
    /// `detail` builds the event from the capture times of the first and last record.
    private func countRemoved(
        _ partition: Partition,
        _ range: ClosedRange<Int64>,
        _ kind: LossKind,
        detail: (_ from: EventValue, _ to: EventValue) -> [(key: String, value: EventValue)]
    ) throws {
        let (first, last) = try countGone(partition, range, kind, isReported: true)
        let from = clockMap.resolve(first.stamp, boot: first.boot).wall
        let to = clockMap.resolve(last.stamp, boot: last.boot).wall
        let now = clock.stamp()
        let detail = detail(
            reported(from, boot: first.boot, at: now),
            reported(to, boot: last.boot, at: now)
        )
        try insert(Event(kind.event, source: "storage", detail: detail, stamp: now))
    }
}
