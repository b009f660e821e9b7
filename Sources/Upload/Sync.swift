// Syncs: each sends what is due, batch by batch, until nothing is left or the server takes nothing more.
package import Host
package import Queue
import Records
package import StatusBoard

/// What a sync has come to.
package struct SyncResult: Codable, Sendable, Equatable {
    /// Records accepted before it that still wait; nil when that is not known.
    package var left: Int?
    /// Records that it set aside because the server refuses them.
    package var quarantined = 0
    /// A damaged database was set aside, and what it holds is not known yet, but soon; nil for false.
    package var isSalvaging: Bool?

    /// Everything that was accepted before is with the server.
    package var isDone: Bool { left == 0 && quarantined == 0 }

    package init(left: Int? = nil, quarantined: Int = 0, isSalvaging: Bool? = nil) {
        self.left = left
        self.quarantined = quarantined
        self.isSalvaging = isSalvaging
    }
}

/// Does the syncs.
///
/// It has no thread, clock or random numbers of its own, so that a test or a simulator can drive it.
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
    /// The batch that was sent again last: one that fails must not hold up those behind it.
    private var resendAfter: Int64 = 0
    /// Until when uploads wait for the clock's first synchronisation.
    private var clockDeadline: BootInstant?
    /// The keys of batches of which nothing was sent yet.
    private var unsent: Set<String> = []
    /// Bytes on the wire that are not entered yet, and when some were.
    private var traffic = Traffic()
    /// Of the batch that is under way, what is counted.
    private var counted = Traffic()
    private var trafficNotedAt: BootInstant?

    /// `random` gives numbers in 0..<1.
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

    /// Until the next sync by itself; nil when only a trigger is waited for.
    package var retryDelay: Duration? {
        // Before what holds everything is over, the end of a wait after a failure would lead to no sync, again and again.
        (clockDeadline ?? allowance.heldUntil ?? pacing.until).map { max(.zero, $0 - clock.now()) }
    }

    /// Whatever the next sync is for, and whenever it comes: its first request makes a new connection.
    func networkChanged() { destination.networkChanged() }

    /// Says whether something is held, before the first sync.
    func start() { allowance.hold().map(tell) }

    /// Sends everything that was accepted before now.
    package func perform(_ reason: SyncReason) -> SyncResult {
        clockDeadline = nil
        allowance.begin(reason)
        guard reason.isAsked || clockIsGood() else {
            // With a deadline of its own: the next tick of the grid could be much later.
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
            // The next sync begins with what takes the place of a damaged database; no upload failed.
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

    /// Uploads wait a little for the first synchronisation of the clock after a boot: dates are better then.
    private func clockIsGood() -> Bool {
        if clock.now().nanoseconds >= settings.clockPatience.nanoseconds { return true }
        return side.clockIsSynced
    }

    /// Sends batch after batch; returns how many records that were accepted before still wait, if that is known.
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
        // Of an outage's first requests, and of the portions behind it, none is for what failed before.
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

    /// Sends uploaded batches again that a person asked for, a portion per sync; pending records come first.
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

    /// Batches that one sync sends again at most.
    private static let resends = 40

    /// Sends the batch of a step; nil when there is none.
    private func sendNext(
        _ step: SyncOrder.Step,
        _ supply: inout BatchSupply
    ) throws -> AfterBatch? {
        do {
            guard let due = try supply.next(step, judge.refusals) else { return nil }
            if case .newest = step, supply.isProbe { failing.probed() }
            return try send(due)
        } catch let problem as RecordsUnreadable {
            // What cannot be read of one stream must not hold up the others.
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
        // A frozen batch, if there is one, is the first to find out whether the server is there: an outage
        // must not leave another small batch behind at each try.
        // Sound that waits for the budget finds nothing out.
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
        // It was frozen before anybody knew the right time, and can still be dated by it.
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
        if delivery?.isHeld != true { requestsLeft = requestsLeft.map { max(0, $0 - 1) } }
        note(atOnce: false)
        guard let judged = try outcome.get() else { return .goOn }
        return judged.isHeld ? try held(due) : try judge.judge(judged, due)
    }

    /// Whether a batch that was frozen before may be as long as it is: the limit may have been lowered.
    private func fits(_ batch: Batch) throws -> Bool {
        try batch.records == 1 || settings.batchesStayWhole
            || side.fits(batch, settings.maxBatchBytes, destination)
    }

    /// Remembers a batch of which nothing was ever sent.
    private func note(_ due: DueBatch, _ delivery: Delivery?) {
        let wasUnsent = unsent.remove(due.batch.key) != nil || due.isFirstTry
        guard wasUnsent, let delivery, delivery.traffic.sent == 0 else { return }
        if delivery.isUnsent || delivery.isHeld { unsent.insert(due.batch.key) }
    }

    /// The budget has no room for a batch; its halves may fit into a day that the whole never does.
    private func held(_ due: DueBatch) throws -> AfterBatch {
        guard !due.isResend, allowance.neverFits(due.batch) else { return .streamRests }
        try side.split(due.batch)
        return .goOn
    }

    /// Sets, by how this sync ended, when the next one may begin.
    private func end(_ left: Int?) {
        // Should the disk refuse it, the quarantine itself still says what is in it.
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
            // Probed once an interval, by the grid alone.
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

    /// Says that nothing goes by itself; a token or an address that is wrong is no less so.
    private func tell(_ hold: Allowance.Hold) {
        let isWrong = book.phase == .tokenRefused || book.phase == .endpointWrong
        let held = hold.phase == .waitingForBudget ? Set(side.streams) : []
        book.enter(isWrong ? book.phase : hold.phase, notBefore: hold.until, held: held)
    }

    // MARK: Bytes on the wire

    /// Whether a request may begin; what those before it for the same batch took is counted.
    private func mayBegin(_ batch: Batch, cost: Int64, after soFar: Traffic) -> Bool {
        count(soFar)
        guard allowance.mayBegin(batch, cost) else { return false }
        let ahead = traffic + Traffic(sent: cost)
        guard settings.dailyBudget != nil, cost >= Self.large, ahead.total > 0 else { return true }
        // Entered before it begins: whoever is killed in it again and again must not send it each time for nothing.
        if (try? side.note(ahead)) != nil { traffic = Traffic(sent: -cost) }
        return true
    }

    /// A request that takes so much is worth a commit of its own.
    private static let large: Int64 = 64 << 10

    /// Counts what the batch that is under way took so far.
    private func count(_ soFar: Traffic) {
        allowance.ended(soFar - counted)
        traffic = traffic + soFar - counted
        counted = soFar
    }

    /// The budget has room for a call beside syncs.
    var hasRoom: Bool { allowance.hasRoom }

    /// Counts bytes that were sent outside of a sync; they are entered with those of the next one.
    func add(_ more: Traffic) {
        traffic = traffic + more
        allowance.spend(more)
    }

    /// Another uploader takes over: what was entered before a request and did not go is taken back.
    func finish() {
        guard traffic != Traffic(), (try? side.note(traffic)) != nil else { return }
        traffic = Traffic()
    }

    /// Enters bytes on the wire, at most twice a minute: each time is a commit.
    private func note(atOnce: Bool) {
        let now = clock.now()
        if !atOnce, let trafficNotedAt, now - trafficNotedAt < .seconds(30) { return }
        guard traffic.total > 0 else { return }
        trafficNotedAt = now
        if (try? side.note(traffic)) != nil { traffic = Traffic() }
    }
}
