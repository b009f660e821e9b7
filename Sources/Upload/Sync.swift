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
    /// Uploaded records that are still to be sent again; nil for none.
    package var resending: Int?

    /// The server has everything that was accepted before.
    package var isDone: Bool { left == 0 && quarantined == 0 }

    package init(
        left: Int? = nil,
        quarantined: Int = 0,
        isSalvaging: Bool? = nil,
        resending: Int? = nil
    ) {
        self.left = left
        self.quarantined = quarantined
        self.isSalvaging = isSalvaging
        self.resending = resending
    }
}

/// Runs syncs.
///
/// It gets thread, clock and random numbers from its caller, so tests and the simulator can drive
/// it.
package final class Sync {
    let settings: UploadSettings
    let queue: Queue
    let side: QueueClient
    let destination: any Destination
    let clock: any HostClock
    private let random: () -> Double
    let stop: StopSignal
    var book: SyncReportBook
    private var pacing: Pacing
    var allowance: Allowance
    var refusals = Refusals()
    var failing: FailingBatches
    var found = SyncFindings()
    /// Requests this sync may still make; nil for any number.
    var requestsLeft: Int?
    /// The stream that the next sync begins with.
    private var firstStream: Stream?
    /// The batch that was resent last: one that fails must not block the batches after it.
    var resendAfter: Int64 = 0
    /// The server asked not to be sent resends before this; nil if it did not.
    var resendNotBefore: BootInstant?
    /// When the server takes records of a stream again; absent if it takes them now.
    var heldStreams: [Stream: BootInstant] = [:]
    /// Until when uploads wait for the first clock synchronisation.
    private var clockDeadline: BootInstant?
    /// The keys of batches that were never sent, not even in part.
    var unsent: Set<String> = []
    /// Bytes on the wire that are not committed yet.
    var traffic = Traffic()
    /// The part of the current batch's traffic that is already counted.
    var counted = Traffic()
    var trafficNotedAt: BootInstant?

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
        self.queue = queue
        self.destination = destination
        self.clock = clock
        self.random = random
        self.stop = stop
        side = QueueClient(queue)
        failing = FailingBatches(queue)
        book = SyncReportBook(board, clock, streams: queue.streams.streams)
        pacing = Pacing(interval: settings.interval)
        let budget = budget ?? DayBudget(queue, clock: clock)
        allowance = Allowance(settings, budget, queue, clock, random: random)
    }

    /// The time until the next automatic sync; nil if only a trigger starts one.
    package var retryDelay: Duration? {
        // While everything is held, the end of a backoff would start syncs that send nothing.
        (clockDeadline ?? allowance.heldUntil ?? pacing.until).map { max(.zero, $0 - clock.now()) }
    }

    /// All streams in upload order, small ones first: audio must not delay a position.
    private var streams: [Stream] { queue.streams.streams }

    /// Makes the first request of the next sync open a new connection.
    func networkChanged() { destination.networkChanged() }

    /// Publishes whether uploads are held, before the first sync.
    func start() { allowance.hold().map(report) }

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
            report(hold)
            return SyncResult()
        }
        found = SyncFindings(
            endsAtFailure: pacing.isFailing && (reason == .tick || reason == .retry),
            reported: found.reported.intersection([.events])
        )
        refusals.beginSync()
        failing.beginSync()
        let now = clock.now()
        heldStreams = heldStreams.filter { $1 > now && !reason.isAsked }
        requestsLeft = pacing.begin(reason, at: now)
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
                fail((error as? Failure) ?? Failure("\(error)"), all: streams)
            }
        }
        end(left)
        let resending = queue.resending.values.reduce(0, +)
        return SyncResult(
            left: left,
            quarantined: found.quarantined,
            isSalvaging: isSalvaging ? true : nil,
            resending: resending > 0 ? resending : nil
        )
    }

    /// Returns whether uploads may start: they wait briefly for the clock's first synchronisation
    /// after boot, which improves timestamps.
    private func clockIsGood() -> Bool {
        if clock.now().nanoseconds >= settings.clockPatience.nanoseconds { return true }
        return queue.clockIsSynced
    }

    /// Sends batch after batch; returns how many records accepted before the sync are still
    /// pending, nil if unknown.
    private func sendAll() throws -> Int? {
        try destination.begin()
        let mark = try side.mark()
        allowance.open()
        var supply = BatchSupply(
            side: side,
            destination: destination,
            mark: mark,
            // The first requests after an outage, and the portions that follow, are not spent on
            // failing batches.
            triesStuck: requestsLeft == nil,
            hasBudget: settings.dailyBudget != nil,
            maxBatchBytes: settings.maxBatchBytes
        )
        var order = try order(&supply)
        firstStream = nil
        while !stop.isRaised, requestsLeft != 0, !allowance.endsNow,
            let step = order.next()
        {
            guard let room = allowance.room(for: step.stream) else {
                order.rests(step.stream)
                continue
            }
            invariant(room > 0, "a stream that may send has room")
            supply.maxBatchBytes = Int(min(Int64(settings.maxBatchBytes), room))
            supply.fills = settings.fillsBudget && allowance.mayFill
            switch try sendNext(step, &supply) {
            case nil: order.isEmpty(step)
            case .goOn: order.sent(step, at: clock.now())
            case .streamRests: order.rests(step.stream)
            case .syncEnds:
                if found.failure.isThere { firstStream = order.following }
                return try side.left(of: mark)
            }
        }
        try resend()
        return try side.left(of: mark)
    }

    /// Sends the batch of a step; returns nil if there is none.
    private func sendNext(
        _ step: SyncOrder.Step,
        _ supply: inout BatchSupply
    ) throws -> AfterBatch? {
        do {
            guard let due = try supply.next(step, refusals, failing) else { return nil }
            if case .newest = step, supply.isProbe { failing.probed() }
            return try send(due)
        } catch let problem as UnreadableRecordsError {
            // Unreadable records of one stream must not block the others.
            fail(Failure("\(problem.error); look at the disk"), [step.stream])
            return problem.isOlder ? .goOn : .streamRests
        }
    }

    private func order(_ supply: inout BatchSupply) throws -> SyncOrder {
        let streams = streams.filter {
            heldStreams[$0] == nil && !($0 == .audio && side.keepsSound)
        }
        var order = SyncOrder(
            streams,
            small: streams.filter { queue.isSmall($0) },
            first: firstStream,
            interval: settings.liveInterval
        )
        // A frozen batch, if there is one, tests first whether the server is available: an outage
        // must not leave another small batch behind at each try. Audio that waits for the budget
        // cannot test it.
        let hasReady = try streams.contains { stream in
            let batch = try side.nextReady(stream) { !failing.waitsBehind($0) }
            return batch.map { queue.isSmall(stream) || !allowance.isTooDear($0) } ?? false
        }
        supply.isProbe = hasReady && failing.wantsProbe
        if !hasReady || supply.isProbe {
            order.beginWithNewest(at: clock.now(), isProbe: supply.isProbe)
        }
        return order
    }

    /// Schedules the next sync, depending on how this one ended.
    private func end(_ left: Int?) {
        // If the disk refuses the event, the quarantine itself still lists the records.
        try? reportQuarantined()
        failing.endSync()
        firstStream = refusals.cutShort ?? firstStream
        let now = clock.now()
        if found.failure.isThere {
            pacing.failed(at: now, after: found.failure.after, random: random())
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
            report(hold)
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
        record(atOnce: true)
    }

    /// Publishes that automatic uploads are held, unless token or endpoint are wrong, which matters
    /// more.
    private func report(_ hold: Allowance.Hold) {
        let isWrong = book.phase == .tokenRefused || book.phase == .endpointWrong
        let held = hold.phase == .waitingForBudget ? Set(streams) : []
        book.enter(isWrong ? book.phase : hold.phase, notBefore: hold.until, held: held)
    }
}
