// Sends one batch of a sync, and counts its bytes on the wire.
import Host
import Queue
import Records

extension Sync {
    /// Sends a batch and carries out the verdict.
    func send(_ due: DueBatch) throws -> AfterBatch {
        let batch = due.batch
        invariant(requestsLeft != 0, "a sync makes no more requests than it may")
        guard batch.state == (due.isResend ? .uploaded : .ready) else {
            throw BatchSupply.isNotDue(batch)
        }
        // It was frozen before the time was known, and no server has seen it, so it can still be
        // redated.
        if side.isDatedBetter(batch), unsent.remove(batch.key) != nil {
            try queue.perform { try $0.release(batch) }
            return .goOn
        }
        if allowance.isTooDear(batch) { return try held(due) }
        guard try due.isFirstTry || due.isResend || fits(batch) else {
            failing.split(batch, into: try side.split(batch))
            return .goOn
        }
        counted = Traffic()
        book.sending(batch)
        let outcome = Result {
            try side.reading(
                batch.partition,
                batch.first...batch.last,
                lose: {
                    try due.isResend ? resendLost($0, batch) : side.lose($0, of: batch)
                },
                {
                    try destination.send(
                        batch,
                        from: $0,
                        mayCost: { mayBegin(batch, cost: $0, after: $1) },
                        until: stop
                    )
                }
            )
        }
        let delivery = (try? outcome.get()) ?? nil
        record(due, delivery)
        count(delivery?.traffic ?? counted)
        book.sent(due.batch, bytes: delivery?.bytes ?? 0)
        book.offered(delivery)
        if delivery?.verdict != .held { requestsLeft = requestsLeft.map { max(0, $0 - 1) } }
        record(atOnce: false)
        guard let evaluated = try outcome.get() else { return .goOn }
        return try evaluate(evaluated, due)
    }

    /// Returns whether a batch frozen earlier fits the limit, which may have been lowered since.
    private func fits(_ batch: Batch) throws -> Bool {
        try batch.records == 1 || settings.batchesStayWhole
            || side.fits(batch, settings.maxBatchBytes, destination)
    }

    /// Remembers batches that were never sent, not even in part.
    private func record(_ due: DueBatch, _ delivery: Delivery?) {
        let wasUnsent = unsent.remove(due.batch.key) != nil || due.isFirstTry
        guard wasUnsent, let delivery, delivery.traffic.sent == 0 else { return }
        if delivery.isUnsent || delivery.verdict == .held { unsent.insert(due.batch.key) }
    }

    /// Resends uploaded batches on a user's request, a portion per sync, after all pending records.
    func resend() throws {
        let begin = clock.now()
        guard resendNotBefore.map({ begin >= $0 }) ?? true else { return }
        let bytes = book.bytesSent + Int64(settings.maxBatchBytes)
        for _ in 0..<Self.resends {
            guard !stop.isRaised, requestsLeft != 0, !allowance.endsNow, !found.failure.isThere,
                book.bytesSent < bytes, clock.now() - begin < settings.liveInterval
            else { return }
            let next = try side.nextResend(after: resendAfter) ?? side.nextResend(after: 0)
            resendAfter = next?.id ?? 0
            if let next, next.stream == .audio && side.keepsSound || heldStreams[next.stream] != nil
            {
                continue
            }
            guard let batch = next, allowance.room(for: batch.stream) != nil,
                !allowance.isTooDear(batch)
            else { return }
            let due = DueBatch(batch: batch, isFirstTry: false, isResend: true)
            do {
                guard case .goOn = try send(due) else { return }
            } catch let problem as UnreadableRecordsError {
                return try resendFailed(
                    batch,
                    Failure("\(problem.error); look at the disk")
                )
            }
        }
    }

    /// The most batches that one sync resends.
    private static let resends = 40

    // MARK: Bytes on the wire

    /// Returns whether a request may begin; counts the traffic of earlier requests for the same
    /// batch.
    private func mayBegin(_ batch: Batch, cost: Int64, after soFar: Traffic) -> Bool {
        count(soFar)
        guard allowance.mayBegin(batch, cost) else { return false }
        let ahead = traffic + Traffic(sent: cost)
        guard settings.dailyBudget != nil, cost >= Self.large, ahead.total > 0 else { return true }
        // Committed before the request: a process that is killed in it repeatedly must not resend
        // it uncounted.
        if commit(ahead) { traffic = Traffic(sent: -cost) }
        return true
    }

    /// The size in bytes from which a request is worth its own commit.
    private static let large: Int64 = 64 << 10

    /// Counts the traffic of the current batch so far.
    private func count(_ soFar: Traffic) {
        invariant(
            soFar.sent >= counted.sent && soFar.received >= counted.received,
            "the bytes of a batch do not fall"
        )
        allowance.ended(soFar - counted)
        traffic = traffic + soFar - counted
        counted = soFar
    }

    /// The budget has room for a heartbeat request.
    var hasRoom: Bool { allowance.hasRoom }

    /// Counts bytes that were sent outside a sync; the next sync commits them.
    func add(_ more: Traffic) {
        traffic = traffic + more
        allowance.spend(more)
    }

    /// Hands over to another uploader: takes back bytes that were committed before a request but
    /// not sent.
    func finish() {
        if traffic != Traffic(), commit(traffic) { traffic = Traffic() }
    }

    /// Commits the traffic counters, at most twice per minute unless `atOnce`.
    func record(atOnce: Bool) {
        let now = clock.now()
        if !atOnce, let trafficNotedAt, now - trafficNotedAt < .seconds(30) { return }
        guard traffic.total > 0 else { return }
        trafficNotedAt = now
        if commit(traffic) { traffic = Traffic() }
    }

    /// Commits traffic to the counters; returns false if the disk refuses.
    private func commit(_ traffic: Traffic) -> Bool {
        (try? queue.perform { try $0.record(traffic) }) != nil
    }
}
