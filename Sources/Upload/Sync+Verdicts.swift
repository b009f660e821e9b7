// Carries out verdicts: updates the batch and decides whether the sync continues.
import Host
import Queue
import Records
import StatusBoard

/// The problems that a sync has met so far.
struct SyncFindings {
    /// The previous sync failed too, and nobody asked for this one.
    var endsAtFailure = false
    /// A batch was accepted.
    var hasAccepted = false
    /// Its failure, and how long the server asked to wait because of it.
    var failure: (isThere: Bool, after: Duration?) = (false, nil)
    /// Batches that it quarantined, with the server's last message.
    var setAside: [Stream: (batches: [Batch], message: String)] = [:]
    /// Streams whose unexpected duplicates were reported: in this sync, or ever for events.
    var reported: Set<Stream> = []

    /// The number of records that it quarantined.
    var quarantined: Int {
        setAside.values.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.records } }
    }
}

extension Sync {
    func evaluate(_ delivery: Delivery, _ due: DueBatch) throws -> AfterBatch {
        let (batch, stream) = (due.batch, due.batch.stream)
        found.hasAccepted = found.hasAccepted || delivery.verdict == .accepted
        if due.isResend, let next = try evaluateResend(delivery, batch) { return next }
        switch delivery.verdict {
        case .held: return try held(due)
        case .stopped: return .syncEnds
        case .accepted:
            try queue.perform { try $0.uploaded(batch) }
            refusals.accepted(stream)
            failing.accepted(batch)
            book.accepted(batch)
            reportDuplicates(delivery, due)
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
            return try failed(batch, failure, found.endsAtFailure ? .syncEnds : .streamRests)
        case .streamHeld(let failure, let time):
            hold(stream, failure, for: time)
            return .streamRests
        case .inProgress(let failure, let after):
            // Concerns this batch only, which the server may be storing just now.
            fail(failure, [stream], after: after)
            return after != nil || found.endsAtFailure ? .syncEnds : .streamRests
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
            return try refused(
                batch,
                message,
                attempts: settings.maxAttempts,
                "the server refused records"
            )
        }
    }

    /// Sends nothing of a stream until `time` has passed, or for five minutes.
    private func hold(_ stream: Stream, _ failure: Failure, for time: Duration?) {
        heldStreams[stream] = clock.now() + (time ?? .seconds(300))
        book.failed(failure, [stream])
    }

    /// Handles a batch that the budget has no room for: splits it if a whole day never has room.
    func held(_ due: DueBatch) throws -> AfterBatch {
        guard !due.isResend, allowance.neverFits(due.batch) else { return .streamRests }
        try side.split(due.batch)
        return .goOn
    }

    /// Handles a batch that no server has evaluated; `usual` applies unless only this batch fails.
    private func failed(
        _ batch: Batch,
        _ failure: Failure,
        _ usual: AfterBatch
    ) throws -> AfterBatch {
        let isStuck = failing.isLastChance(batch)
        // If the previous sync failed too, the server may be down.
        let mayPassOver = failing.mayPassOver(batch) && (isStuck || !found.endsAtFailure)
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
        guard !settings.batchesStayWhole, batch.canBeSplit else {
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
    private func evaluateResend(_ delivery: Delivery, _ batch: Batch) throws -> AfterBatch? {
        switch delivery.verdict {
        case .accepted:
            failing.evaluated(batch)
            try side.resent(batch)
        case .tooLarge(let message), .refused(let message):
            failing.evaluated(batch)
            try side.resent(batch)
            let what = "the server refuses records that it accepted before; they are not sent again"
            book.failed(Failure("\(what): \(message)", code: .server), [batch.stream])
        case .unreachable(let failure) where delivery.isUnsent:
            book.failed(failure, [batch.stream])
            return .syncEnds
        case .unreachable(let failure), .retry(let failure, nil):
            try resendFailed(batch, failure)
            return .syncEnds
        case .streamHeld(let failure, let time): hold(batch.stream, failure, for: time)
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
        if found.hasAccepted, failing.resendFailed(batch), try side.resent(batch) {
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
        failing.evaluated(batch)
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
        found.failure.isThere = true
        book.failed(failure, all: streams)
    }

    func fail(_ failure: Failure, _ streams: [Stream], after: Duration? = nil) {
        found.failure = (true, [found.failure.after, after].compactMap { $0 }.max())
        book.failed(failure, streams)
    }

    /// Sends a refused batch in rows, then halves it until one record is left; quarantines that one
    /// after `attempts` refusals.
    private func refused(
        _ batch: Batch,
        _ message: String,
        attempts: Int,
        _ what: String
    ) throws -> AfterBatch {
        failing.evaluated(batch)
        if batch.canBeSplit {
            try side.split(batch, message: message)
        } else if batch.attempts + 1 < attempts {
            try queue.perform { try $0.refused(batch, message: message) }
        } else {
            try queue.perform {
                try $0.refused(batch, message: message)
                try $0.quarantine(batch, message: message)
            }
            invariant(batch.records == 1, "only single records are quarantined")
            found.setAside[batch.stream, default: ([], "")].batches.append(batch)
            found.setAside[batch.stream]?.message = message
        }
        book.failed(Failure("\(what): \(message)", code: .server), [batch.stream])
        return refusals.refused(batch.id, batch.stream, isAlone: !batch.canBeSplit)
    }

    /// Records one event per stream about quarantined batches; none for the events stream, as it
    /// could be refused too.
    func reportQuarantined() throws {
        for (stream, aside) in found.setAside where stream != .events {
            try queue.perform { try $0.recordQuarantined(aside.batches, message: aside.message) }
        }
    }

    /// Reports duplicates in a first try: an id was used twice, here or by a copy of the device.
    private func reportDuplicates(_ delivery: Delivery, _ due: DueBatch) {
        invariant(!due.isFirstTry || due.batch.attempts == 0, "no first try was refused before")
        guard due.isFirstTry, delivery.duplicates > 0, !delivery.wasRepeated,
            found.reported.insert(due.batch.stream).inserted
        else { return }
        queue.accept(
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
