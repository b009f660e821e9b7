// What a sync may send now: by the hours of the day, and by the day's budget.
import Configuration
import Host
import Queue
import Records

/// Asked by a sync before it begins, before each batch and before each request; used by its thread.
final class Allowance {
    /// Nothing is sent by itself before a moment.
    struct Hold {
        var phase: UploadReport.Phase
        var until: BootInstant
    }

    private let limit: Int64?
    private let quiet: QuietHours?
    private let batchesStayWhole: Bool
    private let budget: DayBudget
    private let side: QueueClient
    private let clock: any HostClock
    /// A fleet whose quiet hours or budgets end together comes back spread over this.
    private let spread: Duration
    private let random: () -> Double
    private lazy var share = random()
    private var reason = SyncReason.tick
    /// Streams that had to wait for the budget in this sync.
    private(set) var held: Set<Stream> = []
    /// Until nothing is held, as far as that was asked.
    private(set) var heldUntil: BootInstant?
    /// Of each stream, the last batch that was held, and what a request of it would have cost.
    private var dear: [Stream: (batch: Int64, cost: Int64)] = [:]
    private var underWay: BudgetDay.Share?

    init(
        _ settings: UploadSettings,
        _ budget: DayBudget,
        _ side: QueueClient,
        _ clock: any HostClock,
        random: @escaping () -> Double
    ) {
        (limit, quiet) = (settings.dailyBudget, settings.quiet)
        batchesStayWhole = settings.batchesStayWhole
        (self.budget, self.side, self.clock, self.random) = (budget, side, clock, random)
        let open = (settings.quiet?.open ?? .days(1)) / 2
        spread = min(settings.interval, .seconds(300), open)
        if limit == nil { budget.forget() }
    }

    func begin(_ reason: SyncReason) {
        (self.reason, held, heldUntil) = (reason, [], nil)
    }

    /// There is a database.
    func open() { if limit != nil { budget.open() } }

    // MARK: Hours

    /// Why nothing is to be sent by itself now.
    ///
    /// Of a clock that nobody vouched for in this boot the hours are not believed: a board that is switched on at the
    /// same wrong time each day would be quiet for ever.
    func hold() -> Hold? {
        let now = clock.stamp()
        if let left = quietLeft(at: now) { return hold(.quietHours, now.boot + left) }
        guard let limit, room(of: limit, .small) < DayBudget.least, let figures = budget.figures
        else { return nil }
        return hold(.waitingForBudget, now.boot + figures.rest)
    }

    private func hold(_ phase: UploadReport.Phase, _ end: BootInstant) -> Hold {
        let until = end + .milliseconds(Int64(spread.inSeconds * 1000 * share))
        heldUntil = until
        return Hold(phase: phase, until: until)
    }

    /// A sync that nobody asked for ends as the quiet hours begin.
    var endsNow: Bool {
        !reason.isAsked && quietLeft(at: clock.stamp()) != nil
    }

    private func quietLeft(at stamp: Stamp) -> Duration? {
        guard let quiet, let wall = side.rightTime(at: stamp) else { return nil }
        return quiet.left(at: wall)
    }

    // MARK: Bytes

    /// The longest body that a stream may send now; nil, and it is held, where there is no room for any.
    func room(for stream: Stream) -> Int64? {
        guard let limit, reason != .askedOverBudget else { return .max }
        let room = room(of: limit, share(stream))
        // The rest is for header and answer.
        if room >= DayBudget.least { return room - room / 16 - DayBudget.least / 2 }
        held.insert(stream)
        return nil
    }

    /// It was held before, and making its body once more would not change that.
    func isTooDear(_ batch: Batch) -> Bool {
        guard let known = dear[batch.stream], known.batch == batch.id else { return false }
        return !fits(batch, known.cost)
    }

    /// A request of a batch begins, if it may cost so much.
    func mayBegin(_ batch: Batch, _ cost: Int64) -> Bool {
        // A batch to a bucket has a request for each chunk of sound, and may go on for hours.
        guard !endsNow else { return false }
        guard let limit else { return true }
        guard fits(batch, cost) else {
            dear[batch.stream] = (batch.id, cost)
            return false
        }
        let share = goesBeside(batch, cost, limit) ? .beside : share(batch.stream)
        budget.begin(BudgetDay.Request(share: share, bytes: cost))
        underWay = share
        return true
    }

    /// The request has ended; `spent`: what it took.
    func ended(_ spent: Traffic) {
        guard let underWay else { return }
        budget.end(BudgetDay.Request(share: underWay, bytes: spent.total))
        self.underWay = nil
    }

    /// A short request beside the batches can be paid.
    var hasRoom: Bool { limit.map { room(of: $0, .small) >= DayBudget.least } ?? true }

    /// Bytes that went outside of batches.
    func spend(_ traffic: Traffic) { if limit != nil { budget.spend(traffic) } }

    /// A held batch that no day has room for, and whose halves may find some.
    func neverFits(_ batch: Batch) -> Bool {
        guard let limit, let known = dear[batch.stream], known.batch == batch.id,
            !isOnePiece(batch)
        else { return false }
        let isSound = share(batch.stream) == .sound
        return known.cost > (isSound ? budget.soundOfDay(of: limit) : limit)
    }

    private func fits(_ batch: Batch, _ cost: Int64) -> Bool {
        guard let limit, reason != .askedOverBudget else { return true }
        let fits =
            goesBeside(batch, cost, limit)
            ? budget.mayGoBeside : cost <= room(of: limit, share(batch.stream))
        if !fits { held.insert(batch.stream) }
        return fits
    }

    /// What is longer than a whole budget, and has no halves, would wait for ever.
    private func goesBeside(_ batch: Batch, _ cost: Int64, _ limit: Int64) -> Bool {
        isOnePiece(batch) && cost > limit
    }

    private func isOnePiece(_ batch: Batch) -> Bool { batchesStayWhole || batch.records == 1 }

    private func room(of limit: Int64, _ share: BudgetDay.Share) -> Int64 {
        budget.room(of: limit, share, tail: quiet?.tail ?? .zero)
    }

    private func share(_ stream: Stream) -> BudgetDay.Share {
        side.isSmall(stream) ? .small : .sound
    }
}
