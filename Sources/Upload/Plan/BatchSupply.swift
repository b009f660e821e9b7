// Chooses the next batch of a sync: one frozen earlier, or one that is frozen now.
import Host
import Queue
import Records
import SQLite

/// A batch that is due.
struct DueBatch {
    var batch: Batch
    /// Frozen just now from records that were in no batch: no server can have seen them.
    var isFirstTry: Bool
    /// It was uploaded before, and a person asked to resend it.
    var isResend = false
}

/// Finds the batches of one sync.
struct BatchSupply {
    let side: QueueClient
    let destination: any Destination
    /// The newest records when the sync began; later ones are left to the next sync.
    let mark: [Stream: Int64]
    /// Stuck batches are tried too, after all others of their stream.
    let triesStuck: Bool
    let hasBudget: Bool
    /// The limit of a body's size; the budget may lower it.
    var maxBatchBytes: Int
    /// Sound that nobody has marked may go, too.
    var fills = false
    /// Only one of the newest records is sent, to test whether the server accepts it.
    var isProbe = false
    /// The last batch that `ready` returned.
    var lastReady: Batch?
    /// For each stream, the last batch that `refused` returned.
    var lastRefused: [Stream: Int64] = [:]

    /// Returns the batch of a step; nil if there is none.
    mutating func next(
        _ step: SyncOrder.Step,
        _ refusals: Refusals,
        _ failing: FailingBatches
    ) throws -> DueBatch? {
        switch step {
        case .newest(let stream, let isFirst):
            return try newest(stream, isFirst: isFirst).map {
                DueBatch(batch: $0, isFirstTry: true)
            }
        case .backlog(let stream):
            if refusals.comeFirst(stream), let refused = try refused(stream, refusals) {
                return refused
            }
            if let ready = try ready(stream, failing) { return ready }
            if let fresh = try oldest(stream) { return DueBatch(batch: fresh, isFirstTry: true) }
            if let more = try filling(stream) { return DueBatch(batch: more, isFirstTry: true) }
            return try refused(stream, refusals) ?? stuck(stream, failing)
        }
    }

    /// Returns the next batch that was frozen earlier.
    private mutating func ready(
        _ stream: Stream,
        _ failing: FailingBatches
    ) throws -> DueBatch? {
        let batch = try side.nextReady(stream) {
            !failing.waitsBehind($0) && !failing.wasPassedOver($0)
        }
        guard let batch else { return nil }
        // Its verdict did not change it, so an index and its table disagree.
        guard batch != lastReady else { throw Self.comesAgain(batch) }
        lastReady = batch
        return DueBatch(batch: batch, isFirstTry: false)
    }

    /// Returns the next stuck batch of a stream, in turn, because a sync tries only a few of them.
    private func stuck(_ stream: Stream, _ failing: FailingBatches) throws -> DueBatch? {
        guard triesStuck else { return nil }
        let isDue = { (batch: Batch) in failing.waitsBehind(batch) && !failing.wasPassedOver(batch)
        }
        let batch =
            try side.nextReady(stream) { isDue($0) && failing.isBehindLast($0) }
            ?? side.nextReady(stream, where: isDue)
        return batch.map { DueBatch(batch: $0, isFirstTry: false) }
    }

    /// An index and its table disagree.
    static func isNotDue(_ batch: Batch) -> SQLiteError {
        let message = "batch \(batch.id) is \(batch.state) and not due"
        return SQLiteError(code: 11, message: message, statement: "")
    }

    private static func comesAgain(_ batch: Batch) -> SQLiteError {
        SQLiteError(code: 11, message: "batch \(batch.id) does not change", statement: "")
    }

    /// Returns the next record that was refused, but only in earlier syncs.
    private mutating func refused(_ stream: Stream, _ refusals: Refusals) throws -> DueBatch? {
        while let batch = try side.nextRefused(stream, after: lastRefused[stream] ?? 0) {
            lastRefused[stream] = batch.id
            if !refusals.hasJudged(batch.id) { return DueBatch(batch: batch, isFirstTry: false) }
        }
        return nil
    }

    /// Freezes the oldest pending records; of chosen sound, the newest.
    private func oldest(_ stream: Stream) throws -> Batch? {
        let end = mark[stream] ?? 0
        while var range = side.pending(stream, through: end) {
            if range.database == 0, stream == .audio, side.choosesSound {
                if let batch = try newestSound(through: end) { return batch }
                continue
            }
            guard let last = try lastRecord(of: range, limit: maxBatchBytes) else { continue }
            range.form = destination.form
            if let batch = try side.freeze(range, through: last) {
                invariant(
                    batch.database > 0 || batch.last <= end,
                    "later records are left to the next sync"
                )
                return batch
            }
            // Records of the range were deleted in between: look again.
        }
        return nil
    }

    /// Freezes the newest of the sound that somebody has marked: first what records have, then what people have.
    private func newestSound(through end: Int64) throws -> Batch? {
        guard let wanted = side.wantedSound(through: end) else { return nil }
        return try freezeEnd(of: wanted, atMost: Self.chunks, limit: maxBatchBytes)
    }

    /// Chunks of chosen sound in a batch: four minutes of the usual length, a megabyte.
    private static let chunks: Int64 = 8

    /// Freezes sound that nobody has marked, the newest first, if the budget is to be filled.
    private func filling(_ stream: Stream) throws -> Batch? {
        guard fills, stream == .audio, try side.releaseNewest(Self.chunks) else { return nil }
        return try newestSound(through: .max)
    }

    /// Freezes a small batch of the newest pending records, so that they arrive soon.
    private func newest(_ stream: Stream, isFirst: Bool) throws -> Batch? {
        guard let range = side.pending(stream, newest: true) else { return nil }
        let count = isProbe ? 1 : SyncOrder.newestRecords
        if isFirst, !hasBudget, side.pending(stream)?.first == range.first {
            // So few that the first batch of the backlog includes them all. With a budget, a stream with
            // few records could wait for days behind one with many.
            if range.last - range.first < count { return nil }
            if let whole = try atOnce(range) { return whole }
        }
        return try freezeEnd(of: range, atMost: count, limit: maxBatchBytes / 8)
    }

    /// Freezes the last records of a range, as many as fit.
    private func freezeEnd(
        of pending: PendingRange,
        atMost most: Int64,
        limit: Int
    ) throws -> Batch? {
        var (range, count) = (pending, most)
        while true {
            range.first = max(range.first, range.last - count + 1)
            guard let last = try lastRecord(of: range, limit: limit) else { return nil }
            if last == range.last || count == 1 { break }
            count = max(1, count / 2)
        }
        range.form = destination.form
        return try side.freeze(range, through: range.last)
    }

    /// Freezes all pending records of a stream if they are not many and fit into one batch: made now,
    /// the body is not made again for the backlog.
    private func atOnce(_ pending: PendingRange) throws -> Batch? {
        var range = pending
        guard range.last - range.first < SyncOrder.recordsAtOnce,
            try lastRecord(of: range, limit: maxBatchBytes) == range.last
        else { return nil }
        range.form = destination.form
        return try side.freeze(range, through: range.last)
    }

    /// Returns the last record that fits.
    ///
    /// Returns nil after recording an unreadable record as lost: the pending range has changed
    /// then.
    private func lastRecord(of range: PendingRange, limit: Int) throws -> Int64? {
        let last = try side.reading(
            range.partition,
            range.first...range.last,
            lose: { try side.lose(range.partition, $0) },
            { try destination.lastRecord(of: range, limit: limit, from: $0) }
        )
        mustHold(
            last.map { range.first <= $0 && $0 <= range.last } ?? true,
            "a batch holds records of its range"
        )
        return last
    }
}
