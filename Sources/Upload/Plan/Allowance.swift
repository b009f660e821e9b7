// Decides what a sync may send now: by quiet hours and daily budget.
import Configuration
import Host
import Queue
import Records

/// Decides whether a sync, a batch or a request may begin.
struct Allowance {
    /// Nothing is sent automatically before a point in time.
    struct Hold {
        var phase: UploadReport.Phase
        var until: BootInstant
    }

    private let limit: Int64?
    private let quiet: QuietHours?
    private let batchesStayWhole: Bool
    private let budget: DayBudget
    private let queue: Queue
    private let clock: any HostClock
    /// The time over which a fleet spreads its return when quiet hours or budgets end together.
    private let spread: Duration
    private let random: () -> Double
    private lazy var share = random()
    private var reason = SyncReason.tick
    /// Streams that had to wait for the budget in this sync.
    private(set) var held: Set<Stream> = []
    /// When the current hold ends, as of the last call of `hold`.
    private(set) var heldUntil: BootInstant?
    /// For each stream, the last batch that was held, and the cost of its request.
    private var dear: [Stream: (batch: Int64, cost: Int64)] = [:]
    private var underWay: BudgetDay.Share?

    init(
        _ settings: UploadSettings,
        _ budget: DayBudget,
        _ queue: Queue,
        _ clock: any HostClock,
        random: @escaping () -> Double
    ) {
        (limit, quiet) = (settings.dailyBudget, settings.quiet)
        batchesStayWhole = settings.batchesStayWhole
        (self.budget, self.queue, self.clock, self.random) = (budget, queue, clock, random)
        let open = (settings.quiet?.open ?? .days(1)) / 2
        spread = min(settings.interval, .seconds(300), open)
        if limit == nil { budget.forget() }
    }

    mutating func begin(_ reason: SyncReason) {
        (self.reason, held, heldUntil) = (reason, [], nil)
    }

    /// Opens the budget; called once there is a database.
    func open() { if limit != nil { budget.open() } }

    // MARK: Quiet hours

    /// Returns why nothing may be sent automatically now; nil if nothing holds it.
    ///
    /// Quiet hours need a clock that was synchronised in this boot: a board that starts at the same
    /// wrong time each day would be quiet forever.
    mutating func hold() -> Hold? {
        let now = clock.stamp()
        if let left = quietLeft(at: now) { return hold(.quietHours, now.boot + left) }
        guard let limit, room(of: limit, .small) < DayBudget.least, let figures = budget.figures
        else { return nil }
        return hold(.waitingForBudget, now.boot + figures.rest)
    }

    private mutating func hold(_ phase: UploadReport.Phase, _ end: BootInstant) -> Hold {
        let until = end + .milliseconds(Int64(spread.inSeconds * 1000 * share))
        heldUntil = until
        return Hold(phase: phase, until: until)
    }

    /// An automatic sync ends when quiet hours begin.
    var endsNow: Bool {
        !reason.isAsked && quietLeft(at: clock.stamp()) != nil
    }

    private func quietLeft(at stamp: Stamp) -> Duration? {
        guard let quiet, let wall = queue.rightTime(at: stamp) else { return nil }
        return quiet.left(at: wall)
    }

    // MARK: Bytes

    /// Returns the longest body that a stream may send now.
    ///
    /// Returns nil, and holds the stream, if there is no room.
    mutating func room(for stream: Stream) -> Int64? {
        guard let limit, reason != .askedOverBudget else { return .max }
        let room = room(of: limit, share(stream))
        // The rest is for header and answer.
        if room >= DayBudget.least { return room - room / 16 - DayBudget.least / 2 }
        held.insert(stream)
        return nil
    }

    /// Returns whether a batch was held for its cost and still does not fit, without making its
    /// body again.
    mutating func isTooDear(_ batch: Batch) -> Bool {
        guard let known = dear[batch.stream], known.batch == batch.id else { return false }
        return !fits(batch, known.cost)
    }

    /// Begins a request if the budget allows its cost; returns whether it did.
    mutating func mayBegin(_ batch: Batch, _ cost: Int64) -> Bool {
        // A batch to a bucket has one request per audio chunk and may take hours.
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

    /// Ends a request, which cost `spent`.
    mutating func ended(_ spent: Traffic) {
        guard let underWay else { return }
        budget.end(BudgetDay.Request(share: underWay, bytes: spent.total))
        self.underWay = nil
    }

    /// The part of the budget that belongs to the day so far is not used up: what is marked later finds its own.
    var mayFill: Bool {
        guard let limit, let figures = budget.figures else { return false }
        let passed = 1 - min(1, figures.rest.inSeconds / 86_400)
        return Double(figures.spent) < Double(limit) * passed
    }

    /// The budget has room for a short request beside batches.
    var hasRoom: Bool { limit.map { room(of: $0, .small) >= DayBudget.least } ?? true }

    /// Counts bytes sent outside of batches.
    func spend(_ traffic: Traffic) { if limit != nil { budget.spend(traffic) } }

    /// Returns whether a whole day has no room for a held batch, but may have for its halves.
    func neverFits(_ batch: Batch) -> Bool {
        guard let limit, let known = dear[batch.stream], known.batch == batch.id,
            !isOnePiece(batch)
        else { return false }
        let isAudio = share(batch.stream) == .sound
        return known.cost > (isAudio ? budget.soundOfDay(of: limit) : limit)
    }

    private mutating func fits(_ batch: Batch, _ cost: Int64) -> Bool {
        guard let limit, reason != .askedOverBudget else { return true }
        let fits =
            goesBeside(batch, cost, limit)
            ? budget.mayGoBeside : cost <= room(of: limit, share(batch.stream))
        if !fits { held.insert(batch.stream) }
        return fits
    }

    /// Returns whether a batch may exceed the budget: it is larger than all of it and cannot be
    /// split, so it would wait forever.
    private func goesBeside(_ batch: Batch, _ cost: Int64, _ limit: Int64) -> Bool {
        isOnePiece(batch) && cost > limit
    }

    private func isOnePiece(_ batch: Batch) -> Bool { batchesStayWhole || batch.records == 1 }

    private func room(of limit: Int64, _ share: BudgetDay.Share) -> Int64 {
        budget.room(of: limit, share, tail: quiet?.tail ?? .zero)
    }

    private func share(_ stream: Stream) -> BudgetDay.Share {
        queue.isSmall(stream) ? .small : .sound
    }
}
