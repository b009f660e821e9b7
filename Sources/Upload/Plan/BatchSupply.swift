// Which batch a sync sends next: one that was frozen before, or one that is frozen now.
import Host
import Queue
import Records
import SQLite

/// A batch that is to be sent.
struct DueBatch {
    var batch: Batch
    /// Frozen just now, of records that were in no batch before: no server can have seen them.
    var isFirstTry: Bool
    /// It was uploaded before, and a person wants it sent again.
    var isResend = false
}

/// Finds the batches of one sync.
struct BatchSupply {
    private let side: QueueClient
    private let destination: any Destination
    private let settings: UploadSettings
    private let failing: FailingBatches
    /// Of a body; what may be sent at all now is less, perhaps.
    var maxBatchBytes: Int
    /// Batches that are stuck are tried, too, behind all others of their stream.
    var triesStuck = true
    /// Of the newest records one goes, to see whether the server takes it.
    var isProbe = false
    /// The newest records when the sync began; what is accepted later is left to the next sync.
    private let mark: AcceptedMark
    /// The last batch that was frozen before.
    private var lastReady: Batch?
    /// Of each stream, the last batch that `refused` returned.
    private var lastRefused: [Stream: Int64] = [:]

    init(
        _ side: QueueClient,
        _ destination: any Destination,
        _ settings: UploadSettings,
        _ failing: FailingBatches,
        mark: AcceptedMark
    ) {
        self.side = side
        self.destination = destination
        self.settings = settings
        self.failing = failing
        self.mark = mark
        maxBatchBytes = settings.maxBatchBytes
    }

    /// nil when there is none.
    mutating func next(_ step: SyncOrder.Step, _ refusals: Refusals) throws -> DueBatch? {
        switch step {
        case .newest(let stream, let isFirst):
            return try newest(stream, isFirst: isFirst).map {
                DueBatch(batch: $0, isFirstTry: true)
            }
        case .backlog(let stream):
            if refusals.comeFirst(stream), let refused = try refused(stream, refusals) {
                return refused
            }
            if let ready = try ready(stream) { return ready }
            if let fresh = try oldest(stream) { return DueBatch(batch: fresh, isFirstTry: true) }
            return try refused(stream, refusals) ?? stuck(stream)
        }
    }

    /// The next batch that was frozen before.
    private mutating func ready(_ stream: Stream) throws -> DueBatch? {
        let batch = try side.nextReady(stream) {
            !failing.waitsBehind($0) && !failing.wasPassedOver($0)
        }
        guard let batch else { return nil }
        // What became of it changed nothing: an index and its table contradict each other.
        guard batch != lastReady else { throw Self.comesAgain(batch) }
        lastReady = batch
        return DueBatch(batch: batch, isFirstTry: false)
    }

    /// The next batch that waits behind its stream: in turn, for a sync tries few of them.
    private func stuck(_ stream: Stream) throws -> DueBatch? {
        guard triesStuck else { return nil }
        let isDue = { [failing] in failing.waitsBehind($0) && !failing.wasPassedOver($0) }
        let batch =
            try side.nextReady(stream) { isDue($0) && failing.isBehindLast($0) }
            ?? side.nextReady(stream, where: isDue)
        return batch.map { DueBatch(batch: $0, isFirstTry: false) }
    }

    private static func comesAgain(_ batch: Batch) -> SQLiteError {
        SQLiteError(code: 11, message: "batch \(batch.id) does not change", statement: "")
    }

    /// The next record that was refused in earlier syncs only.
    private mutating func refused(_ stream: Stream, _ refusals: Refusals) throws -> DueBatch? {
        while let batch = try side.nextRefused(stream, after: lastRefused[stream] ?? 0) {
            lastRefused[stream] = batch.id
            if !refusals.hasJudged(batch.id) { return DueBatch(batch: batch, isFirstTry: false) }
        }
        return nil
    }

    /// Freezes the oldest pending records.
    private func oldest(_ stream: Stream) throws -> Batch? {
        let end = mark.end(of: stream)
        while var range = side.pending(stream), range.database > 0 || range.first <= end {
            if range.database == 0 { range.last = min(range.last, end) }
            guard let last = try lastRecord(of: range, limit: maxBatchBytes) else { continue }
            if let batch = try side.freeze(range, through: last) { return batch }
            // Records of the range were deleted meanwhile: look again.
        }
        return nil
    }

    /// Freezes the newest pending records: few, so that they are there soon.
    private func newest(_ stream: Stream, isFirst: Bool) throws -> Batch? {
        guard var range = side.pending(stream, newest: true) else { return nil }
        var count = isProbe ? 1 : SyncOrder.newestRecords
        // So few records are pending that the first batch of the backlog has them all.
        // Metered, who has few records may wait for days behind one who has many.
        if isFirst, settings.dailyBudget == nil, range.last - range.first < count,
            side.pending(stream)?.first == range.first
        {
            return nil
        }
        while true {
            range.first = max(range.first, range.last - count + 1)
            guard let last = try lastRecord(of: range, limit: maxBatchBytes / 8) else { return nil }
            if last == range.last || count == 1 { break }
            count = max(1, count / 2)
        }
        return try side.freeze(range, through: range.last)
    }

    /// nil when one of its records could not be read, and is entered as lost: there is another range then.
    private func lastRecord(of range: PendingRange, limit: Int) throws -> Int64? {
        try side.reading(
            range.partition,
            range.first...range.last,
            lose: { try side.lose(range.partition, $0) },
            { try destination.lastRecord(of: range, limit: limit, from: $0) }
        )
    }
}
