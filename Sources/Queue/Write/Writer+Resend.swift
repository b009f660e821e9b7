// Sends uploaded records again, after a server was restored from an older backup.
package import Host
package import Records
import SQLite

/// Selects uploaded batches to send again.
package struct ResendRange: Sendable, Equatable {
    /// nil means all streams.
    package var stream: Stream?
    /// The time of upload; `until` is exclusive.
    package var since: WallTime
    package var until: WallTime?

    package init(_ stream: Stream?, since: WallTime, until: WallTime? = nil) {
        self.stream = stream
        self.since = since
        self.until = until
    }

    func contains(_ time: WallTime) -> Bool { time >= since && until.map { time < $0 } ?? true }
}

extension Writer {
    /// Marks uploaded batches of the live database for resending; returns how many, and how many
    /// records of the range may have been deleted since.
    ///
    /// They stay uploaded and are counted once. One of columns becomes one of rows with a new key:
    /// the server may be an older one that does not take columns. A batch whose upload time is
    /// unknown is marked too: the server deduplicates records by id.
    package func resend(_ range: ResendRange) throws -> (
        batches: Int, records: Int, gone: Int
    ) {
        try begin()
        let rows = try connection.prepare(
            """
            SELECT id, last-first+1, done_boot, done_boottime, 0, form FROM batches
            WHERE state=1 AND database=0 AND stream=ifnull(?, stream)
            """,
            range.stream?.number
        )
        let found = try rows.compactMap { row -> (id: Int64, records: Int64, form: Int64)? in
            guard isUploaded(row, in: range) else { return nil }
            return (row.required(0), row.required(1), row.required(5))
        }
        for batch in found {
            try connection.run("UPDATE batches SET resend=1, form=0 WHERE id=?", batch.id)
            if batch.form != 0 {
                try connection.run("UPDATE batches SET uuid=? WHERE id=?", newKey(), batch.id)
            }
        }
        let kinds = streams.streams.filter { range.stream == nil || range.stream == $0 }
        let gone = try kinds.reduce(0) { try $0 + self.gone($1, since: range.since) }
        return (found.count, Int(found.reduce(0) { $0 + $1.records }), Int(gone))
    }

    /// Returns how many uploaded records of a stream were deleted, if one of them was uploaded from
    /// `since` on; the oldest uploads are deleted first.
    private func gone(_ stream: Stream, since: WallTime) throws -> Int64 {
        let last = try memos()[Self.deletedMemo(stream)].flatMap { Int64($0) }
        guard last.map({ $0 >= since.milliseconds }) ?? true else { return 0 }
        let here = try connection.integer(
            "SELECT sum(last-first+1) FROM batches WHERE state=1 AND database=0 AND stream=?",
            stream.number
        )
        return max(0, memory[Partition(stream)].uploaded - (here ?? 0))
    }

    /// Stores when the newest deleted records of a stream were uploaded; unknown without a right clock.
    func recordDeleted(_ stream: Stream, boot: Int64, boottime: Int64) throws {
        let done = Stamp(
            boot: BootInstant(nanoseconds: boottime &* 1_000_000),
            wall: WallTime(milliseconds: 0)
        )
        let (wall, quality) = clockMap.resolve(done, boot: boot)
        let text = quality == .unsynced ? "" : "\(wall.milliseconds)"
        try record(memos: [Self.deletedMemo(stream): text])
    }

    private static func deletedMemo(_ stream: Stream) -> String { "deleted of \(stream.number)" }

    /// Whether the batch in a row was uploaded within a time range.
    private func isUploaded(_ row: borrowing Statement, in range: ResendRange) -> Bool {
        let (wall, quality) = clockMap.resolve(row.stamp(boottime: 3), boot: row.required(2))
        return quality == .unsynced || range.contains(wall)
    }

    /// Clears the mark of a batch that was sent again or cannot be sent.
    ///
    /// Returns false if its first records were deleted since: the rest has a new key, still marked.
    @discardableResult
    package func resent(_ batch: Batch) throws -> Bool {
        try begin()
        let update = "UPDATE batches SET resend=0 WHERE id=? AND state=1 AND uuid=?"
        try connection.run(update, batch.id, batch.key)
        return connection.changes > 0
    }
}
