// Runs syncs: each uploads pending records, batch by batch, until none is left or the server
// accepts no more.
package import Host
package import Queue
import Records
package import StatusBoard

/// The outcome of a sync.
package struct SyncResult: Codable, Sendable, Equatable {
    /// Records accepted before the sync that are still pending; nil if unknown.
    package var left: Int?
    /// Records that this sync quarantined because the server refuses them.
    package var quarantined = 0
    /// A damaged database is being salvaged, so its contents are not known yet; nil for false.
    package var isSalvaging: Bool?

    /// The server has everything that was accepted before.
    package var isDone: Bool { left == 0 && quarantined == 0 }

    package init(left: Int? = nil, quarantined: Int = 0, isSalvaging: Bool? = nil) {
        self.left = left
        self.quarantined = quarantined
        self.isSalvaging = isSalvaging
    }
}

/// Runs syncs.
///
/// It gets thread, clock and random numbers from its caller, so tests and the simulator can drive
/// it.
package final class Sync {
    private let settings: UploadSettings
    private let side: QueueClient
    private let destination: any Destination
    private let clock: any HostClock
    private let random: () -> Double
    private let stop: StopSignal
    private let book: SyncReportBook
    private let judge: VerdictPolicy
    private let failing: FailingBatches
    private var pacing: Pacing
    private let allowance: Allowance
    /// Requests this sync may still make; nil for any number.
    private var requestsLeft: Int?
    /// The stream that the next sync begins with.
    private var firstStream: Stream?
    /// The batch that was resent last: one that fails must not block the batches after it.
    private var resendAfter: Int64 = 0
    /// Until when uploads wait for the first clock synchronisation.
    private var clockDeadline: BootInstant?
    /// The keys of batches that were never sent, not even in part.
    private var unsent: Set<String> = []
    /// Bytes on the wire that are not committed yet.
    private var traffic = Traffic()
    /// The part of the current batch's traffic that is already counted.
    private var counted = Traffic()
    private var trafficNotedAt: BootInstant?

    /// Creates the sync; `random` returns numbers in 0..<1.
    package init(
        settings: UploadSettings,
        queue: Queue,
        destination: any Destination,
        clock: any HostClock,
        random: @escaping () -> Double,
        board: Publisher<UploadReport>,
        budget: DayBudget? = nil,
        stop: StopSignal
    ) {
        self.settings = settings
        self.destination = destination
        self.clock = clock
        self.random = random
        self.stop = stop
        side = QueueClient(queue)
        failing = FailingBatches(queue)
        book = SyncReportBook(board, clock, streams: side.streams)
        judge = VerdictPolicy(side, book, clock, failing, settings)
        pacing = Pacing(interval: settings.interval)
        let budget = budget ?? DayBudget(queue, clock: clock)
        allowance = Allowance(settings, budget, side, clock, random: random)
    }

    /// The time until the next automatic sync; nil if only a trigger starts one.
    package var retryDelay: Duration? {
        // While everything is held, the end of a backoff would start syncs that send nothing.
        (clockDeadline ?? allowance.heldUntil ?? pacing.until).map { max(.zero, $0 - clock.now()) }
    }

    /// Makes the first request of the next sync open a new connection.
    func networkChanged() { destination.networkChanged() }

    /// Publishes whether uploads are held, before the first sync.
    func start() { allowance.hold().map(tell) }

    /// Uploads everything that was accepted before now.
    package func perform(_ reason: SyncReason) -> SyncResult {
        clockDeadline = nil
        allowance.begin(reason)
        guard reason.isAsked || clockIsGood() else {
            // A separate deadline, because the next tick could be much later.
            clockDeadline = BootInstant(nanoseconds: settings.clockPatience.nanoseconds)
            book.enter(
                .waitingForClock,
                notBefore: pacing.notBefore,
                atTheLatest: clockDeadline
            )
            return SyncResult()
        }
        if !reason.isAsked, let hold = allowance.hold() {
            tell(hold)
            return SyncResult()
        }
        judge.beginSync(endsAtFailure: pacing.isFailing && (reason == .tick || reason == .retry))
        requestsLeft = pacing.begin(reason, at: clock.now())
        guard requestsLeft != 0 else { return SyncResult() }
        if reason == .network { destination.networkChanged() }
        book.enter(.uploading)
        var left: Int?
        var isSalvaging = false
        do {
            left = try sendAll()
            book.recovered()
            isSalvaging = left == nil
        } catch {
            side.failed(error)
            // The next sync uses the database that replaces a damaged one; no upload failed.
            isSalvaging = QueueClient.isDamage(error)
            if !isSalvaging {
                judge.fail((error as? Failure) ?? Failure("\(error)"), all: side.streams)
            }
        }
        end(left)
        return SyncResult(
            left: left,
            quarantined: judge.quarantined,
            isSalvaging: isSalvaging ? true : nil
        )
    }

    /// Returns whether uploads may start: they wait briefly for the clock's first synchronisation
    /// after boot, which improves timestamps.
    private func clockIsGood() -> Bool {
        if clock.now().nanoseconds >= settings.clockPatience.nanoseconds { return true }
        return side.clockIsSynced
    }

    /// Sends batch after batch; returns how many records accepted before the sync are still
    /// pending, nil if unknown.
    private func sendAll() throws -> Int? {
        try destination.begin()
        let mark = try side.mark()
        allowance.open()
        var supply = BatchSupply(
            side,
            destination,
            settings,
            failing,
            mark: mark
        )
        // The first requests after an outage, and the portions that follow, are not spent on
        // failing batches.
        supply.triesStuck = requestsLeft == nil
        var order = try order(&supply)
        firstStream = nil
        while !stop.isRaised, requestsLeft != 0, !allowance.endsNow,
            let step = order.next()
        {
            guard let room = allowance.room(for: step.stream) else {
                order.rests(step.stream)
                continue
            }
            supply.maxBatchBytes = Int(min(Int64(settings.maxBatchBytes), room))
            switch try sendNext(step, &supply) {
            case nil: order.isEmpty(step)
            case .goOn: order.sent(step, at: clock.now())
            case .streamRests: order.rests(step.stream)
            case .syncEnds:
                if judge.failure.isThere { firstStream = order.following }
                return try side.left(of: mark)
            }
        }
        try resend()
        return try side.left(of: mark)
    }

    /// Resends uploaded batches on a user's request, a portion per sync, after all pending records.
    private func resend() throws {
        let begin = clock.now()
        guard judge.resendNotBefore.map({ begin >= $0 }) ?? true else { return }
        let bytes = book.bytesSent + Int64(settings.maxBatchBytes)
        for _ in 0..<Self.resends {
            guard !stop.isRaised, requestsLeft != 0, !allowance.endsNow, !judge.failure.isThere,
                book.bytesSent < bytes, clock.now() - begin < settings.liveInterval
            else { return }
            let next = try side.nextResend(after: resendAfter) ?? side.nextResend(after: 0)
            resendAfter = next?.id ?? 0
            guard let batch = next, allowance.room(for: batch.stream) != nil,
                !allowance.isTooDear(batch)
            else { return }
            let due = DueBatch(batch: batch, isFirstTry: false, isResend: true)
            do {
                guard case .goOn = try send(due) else { return }
            } catch let problem as RecordsUnreadable {
                return try judge.resendFailed(
                    batch,
                    Failure("\(problem.error); look at the disk")
                )
            }
        }
    }

    /// The most batches that one sync resends.
    private static let resends = 40

    /// Sends the batch of a step; returns nil if there is none.
    private func sendNext(
        _ step: SyncOrder.Step,
        _ supply: inout BatchSupply
    ) throws -> AfterBatch? {
        do {
            guard let due = try supply.next(step, judge.refusals) else { return nil }
            if case .newest = step, supply.isProbe { failing.probed() }
            return try send(due)
        } catch let problem as RecordsUnreadable {
            // Unreadable records of one stream must not block the others.
            judge.fail(Failure("\(problem.error); look at the disk"), [step.stream])
            return problem.isOlder ? .goOn : .streamRests
        }
    }

    private func order(_ supply: inout BatchSupply) throws -> SyncOrder {
        let streams = side.streams
        var order = SyncOrder(
            streams,
            small: streams.filter { side.isSmall($0) },
            first: firstStream,
            interval: settings.liveInterval
        )
        // A frozen batch, if there is one, tests first whether the server is available: an outage
        // must not leave another small batch behind at each try. Audio that waits for the budget
        // cannot test it.
        let hasReady = try streams.contains { stream in
            let batch = try side.nextReady(stream) { !failing.waitsBehind($0) }
            return batch.map { side.isSmall(stream) || !allowance.isTooDear($0) } ?? false
        }
        supply.isProbe = hasReady && failing.wantsProbe
        if !hasReady || supply.isProbe {
            order.beginWithNewest(at: clock.now(), isProbe: supply.isProbe)
        }
        return order
    }

    private func send(_ due: DueBatch) throws -> AfterBatch {
        let batch = due.batch
        // It was frozen before the time was known, and no server has seen it, so it can still be
        // redated.
        if side.isDatedBetter(batch), unsent.remove(batch.key) != nil {
            try side.release(batch)
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
                    try due.isResend ? judge.resendLost($0, batch) : side.lose($0, of: batch)
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
        note(due, delivery)
        count(delivery?.traffic ?? counted)
        book.sent(due.batch, bytes: delivery?.bytes ?? 0)
        if delivery?.verdict != .held { requestsLeft = requestsLeft.map { max(0, $0 - 1) } }
        note(atOnce: false)
        guard let judged = try outcome.get() else { return .goOn }
        return judged.verdict == .held ? try held(due) : try judge.judge(judged, due)
    }

    /// Returns whether a batch frozen earlier fits the limit, which may have been lowered since.
    private func fits(_ batch: Batch) throws -> Bool {
        try batch.records == 1 || settings.batchesStayWhole
            || side.fits(batch, settings.maxBatchBytes, destination)
    }

    /// Remembers batches that were never sent, not even in part.
    private func note(_ due: DueBatch, _ delivery: Delivery?) {
        let wasUnsent = unsent.remove(due.batch.key) != nil || due.isFirstTry
        guard wasUnsent, let delivery, delivery.traffic.sent == 0 else { return }
        if delivery.isUnsent || delivery.verdict == .held { unsent.insert(due.batch.key) }
    }

    /// Handles a batch that the budget has no room for: splits it if a whole day never has room.
    private func held(_ due: DueBatch) throws -> AfterBatch {
        guard !due.isResend, allowance.neverFits(due.batch) else { return .streamRests }
        try side.split(due.batch)
        return .goOn
    }

    /// Schedules the next sync, depending on how this one ended.
    private func end(_ left: Int?) {
        // If the disk refuses the event, the quarantine itself still lists the records.
        try? judge.tellQuarantined()
        failing.endSync()
        firstStream = judge.refusals.cutShort ?? firstStream
        let now = clock.now()
        if judge.failure.isThere {
            pacing.failed(at: now, after: judge.failure.after, random: random())
        } else if requestsLeft == 0, left != 0, !stop.isRaised {
            pacing.cut(at: now, random: random())
        } else if !stop.isRaised {
            pacing.succeeded()
        }
        if book.phase == .tokenRefused || book.phase == .endpointWrong {
            // Probed once per interval, by ticks only.
            pacing.succeeded()
            book.enter(book.phase)
        } else if let hold = allowance.hold() {
            tell(hold)
        } else {
            let held = allowance.held.filter { side.waits($0) }
            let waiting: UploadReport.Phase = held.isEmpty ? .waiting : .waitingForBudget
            book.enter(
                left == 0 ? .idle : waiting,
                notBefore: pacing.notBefore,
                atTheLatest: pacing.restAt,
                held: held
            )
        }
        note(atOnce: true)
    }

    /// Publishes that automatic uploads are held, unless token or endpoint are wrong, which matters
    /// more.
    private func tell(_ hold: Allowance.Hold) {
        let isWrong = book.phase == .tokenRefused || book.phase == .endpointWrong
        let held = hold.phase == .waitingForBudget ? Set(side.streams) : []
        book.enter(isWrong ? book.phase : hold.phase, notBefore: hold.until, held: held)
    }

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
        if (try? side.note(ahead)) != nil { traffic = Traffic(sent: -cost) }
        return true
    }

    /// The size in bytes from which a request is worth its own commit.
    private static let large: Int64 = 64 << 10

    /// Counts the traffic of the current batch so far.
    private func count(_ soFar: Traffic) {
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
        guard traffic != Traffic(), (try? side.note(traffic)) != nil else { return }
        traffic = Traffic()
    }

    /// Commits the traffic counters, at most twice per minute unless `atOnce`.
    private func note(atOnce: Bool) {
        let now = clock.now()
        if !atOnce, let trafficNotedAt, now - trafficNotedAt < .seconds(30) { return }
        guard traffic.total > 0 else { return }
        trafficNotedAt = now
        if (try? side.note(traffic)) != nil { traffic = Traffic() }
    }
}
