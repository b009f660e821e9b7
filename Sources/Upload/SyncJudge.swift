// What a sync does about a verdict: marks the batch, and says whether to go on.
internal import Board
internal import Host
internal import Queue
internal import Streams

/// Carries out verdicts; used by the sync's thread.
final class SyncJudge {
    /// What to do after one batch.
    enum Next {
        case goOn
        /// Its stream rests until the next sync.
        case streamRests
        /// Nothing more goes out in this sync.
        case syncEnds
    }

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

    func judge(_ delivery: Delivery, _ due: DueBatch) throws -> Next {
        let (batch, stream) = (due.batch, due.batch.stream)
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
            // Who asks to be left alone means this device, not a stream; other errors may be of this stream only.
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

    func fail(_ failure: Failure, _ streams: [Stream], after: Duration? = nil) {
        self.failure = (true, [self.failure.after, after].compactMap { $0 }.max())
        book.failed(failure, streams)
    }

    /// Halves until the refused record stands alone; after so many `attempts` that is set aside.
    private func refused(
        _ batch: Batch,
        _ message: String,
        attempts: Int,
        _ what: String
    ) throws -> Next {
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
        switch refusals.refused(batch.id, batch.stream, isAlone: batch.records == 1) {
        case .goOn: return .goOn
        case .streamRests: return .streamRests
        case .syncEnds: return .syncEnds
        }
    }

    /// One event a stream tells of what was set aside; none of events, which would beget events without end.
    func tellQuarantined() throws {
        for (stream, aside) in setAside where stream != .events {
            try side.noteQuarantined(aside.batches, message: aside.message)
        }
    }

    /// Records that nobody can have had were there already: numbers were used twice, here or by a copy.
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
