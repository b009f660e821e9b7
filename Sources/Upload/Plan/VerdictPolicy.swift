// Carries out verdicts: updates the batch and decides whether the sync continues.
import Host
import Queue
import Records
import StatusBoard

/// Carries out verdicts; used by the sync's thread.
final class VerdictPolicy {
    private let side: QueueClient
    private let book: SyncReportBook
    private let clock: any HostClock
    private let maxAttempts: Int
    /// A batch may be split although the destination may already have it.
    private let maySplit: Bool
    /// The previous sync failed too, and nobody asked for this one.
    private var endsAtFailure = false
    private(set) var refusals = Refusals()
    let failing: FailingBatches
    /// A batch was accepted in this sync.
    private var hasAccepted = false
    /// The server asked not to be sent resends before this; nil if it did not.
    private(set) var resendNotBefore: BootInstant?
    /// This sync's failure, and how long the server asked to wait because of it.
    private(set) var failure: (isThere: Bool, after: Duration?) = (false, nil)
    /// Batches that this sync quarantined, with the server's last message.
    private var setAside: [Stream: (batches: [Batch], message: String)] = [:]
    /// Streams whose unexpected duplicates were reported: in this sync, or ever for events.
    private var told: Set<Stream> = []

    init(
        _ side: QueueClient,
        _ book: SyncReportBook,
        _ clock: any HostClock,
        _ failing: FailingBatches,
        _ settings: UploadSettings
    ) {
        self.side = side
        self.book = book
        self.clock = clock
        self.failing = failing
        maxAttempts = settings.maxAttempts
        maySplit = !settings.batchesStayWhole
    }

    func beginSync(endsAtFailure: Bool) {
        self.endsAtFailure = endsAtFailure
        refusals.beginSync()
        failing.beginSync()
        (failure, hasAccepted) = ((false, nil), false)
        setAside = [:]
        told.formIntersection([.events])
    }

    /// The number of records that this sync quarantined.
    var quarantined: Int {
        setAside.values.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.records } }
    }

    func judge(_ delivery: Delivery, _ due: DueBatch) throws -> AfterBatch {
        let (batch, stream) = (due.batch, due.batch.stream)
        hasAccepted = hasAccepted || delivery.verdict == .accepted
        if due.isResend, let next = try judgeResend(delivery, batch) { return next }
        switch delivery.verdict {
        case .stopped, .held: return .syncEnds
        case .accepted:
            try side.uploaded(batch)
            refusals.accepted(stream)
            failing.accepted(batch)
            book.accepted(batch)
            tellDuplicates(delivery, due)
            return .goOn
        case .unreachable(let failure) where delivery.isUnsent:
            fail(failure, [stream])
            return .syncEnds
        case .unreachable(let failure):
            return try failed(batch, failure, .syncEnds)
        case .retry(let failure, let after?):
            // Applies to the whole device.
            fail(failure, [stream], after: after)
            return .syncEnds
        case .retry(let failure, nil):
            // It may concern this stream only.
            return try failed(batch, failure, endsAtFailure ? .syncEnds : .streamRests)
        case .inProgress(let failure, let after):
            // Concerns this batch only, which the server may be storing just now.
            fail(failure, [stream], after: after)
            return after != nil || endsAtFailure ? .syncEnds : .streamRests
        case .tokenRefused(let failure):
            book.failed(failure, [stream])
            book.enter(.tokenRefused)
            return .syncEnds
        case .endpointWrong(let failure):
            book.failed(failure, [stream])
            book.enter(.endpointWrong)
            return .syncEnds
        case .tooLarge(let message):
            return try refused(batch, message, attempts: 1, "batch too large for the server")
        case .refused(let message):
            return try refused(batch, message, attempts: maxAttempts, "the server refused records")
        }
    }

    /// Handles a batch that no server has evaluated; `usual` applies unless only this batch fails.
    private func failed(
        _ batch: Batch,
        _ failure: Failure,
        _ usual: AfterBatch
    ) throws -> AfterBatch {
        let isStuck = failing.isLastChance(batch)
        // If the previous sync failed too, the server may be down.
        let mayPassOver = failing.mayPassOver(batch) && (isStuck || !endsAtFailure)
        failing.failed(batch)
        if !mayPassOver, failing.waitsBehind(batch) { return .streamRests }
        guard mayPassOver else {
            fail(failure, [batch.stream])
            return usual
        }
        var words = failure
        if isStuck { words.message += "; \(try endWaiting(for: batch))" }
        book.failed(words, [batch.stream])
        return .goOn
    }

    /// Splits a stuck batch or puts it behind its stream; returns a message that says so.
    private func endWaiting(for batch: Batch) throws -> String {
        let what =
            "batch \(batch.key) (\(batch.records) records) keeps failing while others"
            + " are accepted"
        guard maySplit, batch.records > 1 else {
            failing.putBehind(batch)
            return "\(what), and is now sent after the rest of its stream:"
                + " look for it in the server's log"
        }
        failing.split(batch, into: try side.split(batch))
        return "\(what), and is sent in parts"
    }

    /// Handles a resent batch, which stays uploaded and whole whatever the answer.
    ///
    /// Returns nil if the verdict concerns the device, not the batch.
    private func judgeResend(_ delivery: Delivery, _ batch: Batch) throws -> AfterBatch? {
        switch delivery.verdict {
        case .accepted:
            failing.judged(batch)
            try side.resent(batch)
        case .tooLarge(let message), .refused(let message):
            failing.judged(batch)
            try side.resent(batch)
            let what = "the server refuses records that it accepted before; they are not sent again"
            book.failed(Failure("\(what): \(message)", code: .server), [batch.stream])
        case .unreachable(let failure) where delivery.isUnsent:
            book.failed(failure, [batch.stream])
            return .syncEnds
        case .unreachable(let failure), .retry(let failure, nil):
            try resendFailed(batch, failure)
            return .syncEnds
        case .retry(let failure, let after), .inProgress(let failure, let after):
            resendNotBefore = after.map { clock.now() + $0 }
            book.failed(failure, [batch.stream])
            return .syncEnds
        case .stopped, .held, .tokenRefused, .endpointWrong: return nil
        }
        return .goOn
    }

    /// Handles a failed resend, which is not a failure of the sync, because all pending records
    /// were sent.
    ///
    /// It counts only if the server accepted another batch in the same sync; the fifth one clears
    /// the resend mark.
    func resendFailed(_ batch: Batch, _ failure: Failure) throws {
        var words = failure
        if hasAccepted, failing.resendFailed(batch), try side.resent(batch) {
            words.message +=
                "; batch \(batch.key) (\(batch.records) records) failed \(FailingBatches.limit) times while"
                + " others were accepted, and is not sent again: look for it in the server's log, then use"
                + " `waypost resend` once more (a lower upload.max_batch_bytes does not make it smaller)"
        }
        book.failed(words, [batch.stream])
    }

    /// Cancels a resend because a record of the batch is missing or damaged.
    func resendLost(_ sequence: Int64, _ batch: Batch) throws {
        guard try side.resent(batch) else { return }
        failing.judged(batch)
        book.failed(
            Failure(
                "record \(sequence) of batch \(batch.key) is missing or damaged, so the batch"
                    + " (\(batch.records) records) is not sent again; look at the disk"
            ),
            [batch.stream]
        )
    }

    /// Records a failure that stopped every stream.
    func fail(_ failure: Failure, all streams: [Stream]) {
        self.failure.isThere = true
        book.failed(failure, all: streams)
    }

    func fail(_ failure: Failure, _ streams: [Stream], after: Duration? = nil) {
        self.failure = (true, [self.failure.after, after].compactMap { $0 }.max())
        book.failed(failure, streams)
    }

    /// Halves a refused batch until one record is left; quarantines that one after `attempts`
    /// refusals.
    private func refused(
        _ batch: Batch,
        _ message: String,
        attempts: Int,
        _ what: String
    ) throws -> AfterBatch {
        failing.judged(batch)
        if batch.records > 1 {
            try side.split(batch, message: message)
        } else if batch.attempts + 1 < attempts {
            try side.refused(batch, message: message)
        } else {
            try side.quarantine(batch, message: message)
            setAside[batch.stream, default: ([], "")].batches.append(batch)
            setAside[batch.stream]?.message = message
        }
        book.failed(Failure("\(what): \(message)", code: .server), [batch.stream])
        return refusals.refused(batch.id, batch.stream, isAlone: batch.records == 1)
    }

    /// Records one event per stream about quarantined batches; none for the events stream, as it
    /// could be refused too.
    func tellQuarantined() throws {
        for (stream, aside) in setAside where stream != .events {
            try side.noteQuarantined(aside.batches, message: aside.message)
        }
    }

    /// Reports duplicates in a first try: an id was used twice, here or by a copy of the device.
    private func tellDuplicates(_ delivery: Delivery, _ due: DueBatch) {
        guard due.isFirstTry, delivery.duplicates > 0, !delivery.wasRepeated,
            told.insert(due.batch.stream).inserted
        else { return }
        side.tell(
            Event(
                .unexpectedDuplicates,
                source: "upload",
                detail: [
                    ("stream", .text("\(due.batch.stream)")),
                    ("records", .integer(Int64(due.batch.records))),
                    ("duplicates", .integer(Int64(delivery.duplicates))),
                    ("batch_id", .text(due.batch.key)),
                ],
                stamp: clock.stamp()
            )
        )
    }
}
