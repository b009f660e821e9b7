// What a sync does with a verdict: marks the batch, and says whether the sync goes on.
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
    /// A batch of which nobody knows whether the destination has it may be sent in parts.
    private let maySplit: Bool
    /// The sync before failed, too, and nobody asked for this one.
    private var endsAtFailure = false
    private(set) var refusals = Refusals()
    let failing: FailingBatches
    /// A batch was accepted in this sync.
    private var hasAccepted = false
    /// The server wants nothing sent again before this; nil where it said nothing.
    private(set) var resendNotBefore: BootInstant?
    /// The failure of this sync and how long the server wants to be left alone for it.
    private(set) var failure: (isThere: Bool, after: Duration?) = (false, nil)
    /// What this sync set aside, with the server's last message.
    private var setAside: [Stream: (batches: [Batch], message: String)] = [:]
    /// Streams whose unexpected duplicates were told: in this sync, and of events ever.
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

    /// Records that this sync set aside.
    var quarantined: Int {
        setAside.values.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.records } }
    }

    func judge(_ delivery: Delivery, _ due: DueBatch) throws -> AfterBatch {
        let (batch, stream) = (due.batch, due.batch.stream)
        hasAccepted = hasAccepted || delivery.verdict == .accepted
        if due.isResend, let next = try judgeResend(delivery, batch) { return next }
        switch delivery.verdict {
        case nil: return .syncEnds
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
            // Meant for the whole device.
            fail(failure, [stream], after: after)
            return .syncEnds
        case .retry(let failure, nil):
            // It may concern this stream only.
            return try failed(batch, failure, endsAtFailure ? .syncEnds : .streamRests)
        case .inProgress(let failure, let after):
            // About this batch alone, which may be stored just now.
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

    /// Nobody has judged a batch; `usual`: what follows where it is not this batch alone that does not get through.
    private func failed(
        _ batch: Batch,
        _ failure: Failure,
        _ usual: AfterBatch
    ) throws -> AfterBatch {
        let isStuck = failing.isLastChance(batch)
        // Where the sync before failed, too, the server may be gone.
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

    /// Splits a stuck batch, or puts it behind its stream; returns what became of it, for people.
    private func endWaiting(for batch: Batch) throws -> String {
        let what =
            "batch \(batch.key) (\(batch.records) records) fails again and again while others"
            + " are accepted"
        guard maySplit, batch.records > 1 else {
            failing.putBehind(batch)
            return "\(what), and waits behind its stream: look for it in the server's log"
        }
        failing.split(batch, into: try side.split(batch))
        return "\(what), and is sent in parts"
    }

    /// A batch that was sent again stays uploaded and whole whatever the server says; nil where the device is refused.
    private func judgeResend(_ delivery: Delivery, _ batch: Batch) throws -> AfterBatch? {
        switch delivery.verdict {
        case .accepted:
            failing.judged(batch)
            try side.resent(batch)
        case .tooLarge(let message), .refused(let message):
            failing.judged(batch)
            try side.resent(batch)
            let what = "the server refuses records that it took before; they are not sent again"
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
        case nil, .tokenRefused, .endpointWrong: return nil
        }
        return .goOn
    }

    /// A batch that is sent again did not get through: no failure of the sync, for all that is pending was sent.
    ///
    /// It counts only where the server took another batch in the same sync; after the fifth one the mark goes.
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

    /// A record of a batch that is sent again is not there, or not as it was: the batch cannot be sent as it went.
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

    /// Nothing of any stream could be sent.
    func fail(_ failure: Failure, all streams: [Stream]) {
        self.failure.isThere = true
        book.failed(failure, all: streams)
    }

    func fail(_ failure: Failure, _ streams: [Stream], after: Duration? = nil) {
        self.failure = (true, [self.failure.after, after].compactMap { $0 }.max())
        book.failed(failure, streams)
    }

    /// Halves a refused batch until one record is left; that one is set aside after `attempts` refusals.
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

    /// One event a stream tells what was set aside; none about refused events, for it could be refused, too.
    func tellQuarantined() throws {
        for (stream, aside) in setAside where stream != .events {
            try side.noteQuarantined(aside.batches, message: aside.message)
        }
    }

    /// The server had records that were sent for the first time: an id was used twice, here or by a copy.
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
