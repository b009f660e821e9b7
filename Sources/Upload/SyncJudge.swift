// What a sync does with a verdict: marks the batch, and says whether the sync goes on.
internal import Board
internal import Host
internal import Queue
internal import Streams

/// Carries out verdicts; used by the sync's thread.
final class SyncJudge {
    private let side: QueueSide
    private let book: SyncReportBook
    private let clock: any HostClock
    private let maxAttempts: Int
    /// The sync before failed, too, and nobody asked for this one.
    private var endsAtFailure = false
    private(set) var refusals = Refusals()
    /// The failure of this sync and how long the server wants to be left alone for it.
    private(set) var failure: (isThere: Bool, after: Duration?) = (false, nil)
    /// What this sync set aside, with the server's last message.
    private var setAside: [Stream: (batches: [Batch], message: String)] = [:]
    /// Streams whose unexpected duplicates were told: in this sync, and of events ever.
    private var told: Set<Stream> = []

    init(_ side: QueueSide, _ book: SyncReportBook, _ clock: any HostClock, maxAttempts: Int) {
        self.side = side
        self.book = book
        self.clock = clock
        self.maxAttempts = maxAttempts
    }

    func beginSync(endsAtFailure: Bool) {
        self.endsAtFailure = endsAtFailure
        refusals.beginSync()
        failure = (false, nil)
        setAside = [:]
        told.formIntersection([.events])
    }

    /// Records that this sync set aside.
    var quarantined: Int {
        setAside.values.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.records } }
    }

    func judge(_ delivery: Delivery, _ due: DueBatch) throws -> AfterBatch {
        let (batch, stream) = (due.batch, due.batch.stream)
        if due.isResend, let next = try judgeResend(delivery, batch) { return next }
        switch delivery.verdict {
        case nil: return .syncEnds
        case .accepted:
            try side.uploaded(batch)
            refusals.accepted(stream)
            book.accepted(batch)
            tellDuplicates(delivery, due)
            return .goOn
        case .unreachable(let failure):
            fail(failure, [stream])
            return .syncEnds
        case .retry(let failure, let after):
            fail(failure, [stream], after: after)
            // `Retry-After` is meant for the whole device; another error may concern this stream only.
            return after == nil && !endsAtFailure ? .streamRests : .syncEnds
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

    /// A batch that was sent again stays uploaded whatever the server says; nil where it said nothing of its records.
    private func judgeResend(_ delivery: Delivery, _ batch: Batch) throws -> AfterBatch? {
        switch delivery.verdict {
        case .accepted: try side.resent(batch)
        case .tooLarge(let message), .refused(let message):
            try side.resent(batch)
            let what = "the server refuses records that it took before; they are not sent again"
            book.failed(Failure("\(what): \(message)", code: .server), [batch.stream])
        default: return nil
        }
        return .goOn
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
