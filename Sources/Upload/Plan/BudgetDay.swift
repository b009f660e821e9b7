// One day of the byte budget: when it ends, what is spent, and how much audio must leave to the
// rest.
import Host
import Queue

/// A point in time and whether the device knows its date.
struct BudgetClock: Sendable {
    var stamp: Stamp
    /// The wall clock was synchronised in this boot.
    var isSynced: Bool

    /// Days since 1970-01-01 UTC; nil if unknown.
    var today: Int64? { isSynced ? stamp.wall.utcDay : nil }
}

/// One day's account: a pure value, stored as JSON.
///
/// A day is a UTC day. It ends at midnight if the clock is known, else after 24 hours of running
/// time. A clock that is set back or unknown therefore never begins a new day, and a clock that was
/// years ahead blocks nothing for longer than 24 hours. A day that began without a date ends at the
/// midnight after the date became known.
struct BudgetDay: Codable, Sendable, Equatable {
    /// The purpose that bytes are spent for.
    enum Share: String, Codable, Sendable {
        /// Events, readings, positions: every stream except audio.
        case small
        case sound
        /// One record, or a bucket's batch, that exceeds a whole budget, once per day: otherwise it
        /// would wait forever.
        case beside
    }

    struct Request: Codable, Sendable, Equatable {
        var share: Share
        var bytes: Int64
    }

    /// Days since 1970-01-01 UTC; nil until the clock was known for the first time.
    private(set) var day: Int64?
    /// Milliseconds of running time since the day began.
    private(set) var age: Int64 = 0
    private var small: Int64 = 0
    private var sound: Int64 = 0
    private var beside: Int64 = 0
    /// The bytes that small streams need per day, from earlier days; nil if there were none.
    private(set) var usual: Int64?
    /// A request that has begun: after a kill during it, the next start counts all of it.
    private var underWay: Request?

    private static let length: Int64 = 86_400_000
    /// The shortest day that allows an estimate of a whole one.
    private static let quarter = length / 4

    /// Returns whether every number is in a range that an undamaged page can have.
    var isPlausible: Bool {
        let bytes: [Int64] = [age, small, sound, beside, usual ?? 0, underWay?.bytes ?? 0]
        return bytes.allSatisfy { (0...(1 << 42)).contains($0) }
            && (-(1 << 30)...(1 << 30)).contains(day ?? 0)
    }

    /// Starts the first day; `spent` is the traffic since midnight, before a budget was counted.
    ///
    /// It may have been mostly audio, so it says nothing about the need of other streams.
    init(spent: Int64) { sound = spent }

    // MARK: Time

    /// Advances the day; begins another one when this one is over.
    mutating func pass(_ elapsed: Duration, _ clock: BudgetClock) {
        age += max(0, elapsed.milliseconds)
        // The first day may begin without a date; learning it later does not begin another day.
        if day == nil { day = clock.today }
        if let today = clock.today, let day, today > day {
            begin(today)
        } else if age >= longest(clock) {
            // At least a day has passed, so a date in the future was wrong.
            begin(day.map { day in clock.today.flatMap { $0 < day ? $0 : nil } ?? day + 1 })
        }
    }

    /// Returns the day's longest duration: a dated day lasts until midnight, unless the date does
    /// not advance.
    private func longest(_ clock: BudgetClock) -> Int64 {
        day != nil && day == clock.today ? 2 * Self.length : Self.length
    }

    private mutating func begin(_ day: Int64?) {
        if age >= Self.quarter {
            // The busiest days count and decay slowly.
            usual = max(Self.ofWhole(small, in: age), (usual ?? 0) / 8 * 7)
        }
        self.day = day
        (age, small, sound, beside) = (0, 0, 0, 0)
        invariant(usual ?? 0 >= 0, "small streams need bytes")
    }

    /// Returns the time until the day ends.
    func rest(_ clock: BudgetClock) -> Duration {
        guard let day, clock.today == day else { return .milliseconds(max(0, Self.length - age)) }
        return .milliseconds((day + 1) * Self.length - clock.stamp.wall.milliseconds)
    }

    /// Extrapolates bytes in a time to a whole day.
    private static func ofWhole(_ bytes: Int64, in time: Int64) -> Int64 {
        Int64(Double(bytes) / Double(time) * Double(length))
    }

    // MARK: Bytes

    /// Bytes that count against the budget.
    var spent: Int64 { small + sound + (underWay.map { $0.share == .beside ? 0 : $0.bytes } ?? 0) }

    var mayGoBeside: Bool { beside == 0 }

    /// Returns the bytes to reserve for the small streams for `rest` of the day.
    ///
    /// The first day has no estimate, so half the budget is assumed for a whole one.
    func reserve(of budget: Int64, for rest: Duration) -> Int64 {
        let need = max(Self.ofWhole(small, in: max(age, Self.quarter)), usual ?? budget / 2)
        return Int64(Double(need) * Double(max(0, rest.milliseconds)) / Double(Self.length))
    }

    mutating func begin(_ request: Request) {
        settle()
        mustHold(underWay == nil, "one request is under way")
        underWay = request
    }

    mutating func end(_ spent: Request) {
        underWay = nil
        add(spent)
    }

    /// Counts an unfinished request in full.
    mutating func settle() {
        underWay.map { add($0) }
        underWay = nil
    }

    mutating func add(_ request: Request) {
        invariant(request.bytes >= 0, "a request costs bytes")
        switch request.share {
        case .small: small += request.bytes
        case .sound: sound += request.bytes
        case .beside: beside += request.bytes
        }
    }
}
