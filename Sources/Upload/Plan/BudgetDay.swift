// One day of a budget of bytes: when it ends, what of it is spent, and how much of it sound must leave to the others.
import Host
import Queue

/// What a device knows of its time.
struct BudgetClock: Sendable {
    var stamp: Stamp
    /// Somebody vouched for the wall clock in this boot.
    var isSynced: Bool

    /// Days since 1970-01-01 UTC; nil where nobody knows.
    var today: Int64? { isSynced ? stamp.wall.utcDay : nil }
}

/// A day's account: a pure value, kept as JSON.
///
/// A day is one of UTC. It ends at midnight where the clock is known, else when the device has run for 24 hours since it
/// began. A clock that is set back, or that nobody knows, therefore never begins another day, and a clock that was
/// years ahead holds nothing up for longer than 24 hours. What began without a date ends at the midnight after the date
/// was told.
struct BudgetDay: Codable, Sendable, Equatable {
    /// What bytes are spent for.
    enum Share: String, Codable, Sendable {
        /// Events, readings, places: every stream but sound.
        case small
        case sound
        /// One record, or a bucket's batch, that is longer than a whole budget, once a day: it would wait for ever.
        case beside
    }

    struct Request: Codable, Sendable, Equatable {
        var share: Share
        var bytes: Int64
    }

    /// Days since 1970-01-01 UTC; nil until the clock was known for the first time.
    private(set) var day: Int64?
    /// Milliseconds that the device ran since the day began.
    private(set) var age: Int64 = 0
    private var small: Int64 = 0
    private var sound: Int64 = 0
    private var beside: Int64 = 0
    /// What the small streams need in a whole day, as days before this one had it; nil while none was seen.
    private(set) var usual: Int64?
    /// A request that has begun: a program that is killed meanwhile finds it here, and counts all of it.
    private var underWay: Request?

    private static let length: Int64 = 86_400_000
    /// A day says nothing of a whole one before this.
    private static let quarter = length / 4

    /// No number is one that only a damaged page has.
    var isPlausible: Bool {
        let bytes: [Int64] = [age, small, sound, beside, usual ?? 0, underWay?.bytes ?? 0]
        return bytes.allSatisfy { (0...(1 << 42)).contains($0) }
            && (-(1 << 30)...(1 << 30)).contains(day ?? 0)
    }

    /// `spent`: what went since midnight, before anybody counted for a budget.
    ///
    /// It may have been sound for the most part, so it says nothing of what the others need.
    init(spent: Int64) { sound = spent }

    // MARK: Time

    /// Time has passed; begins another day when this one is over.
    mutating func pass(_ elapsed: Duration, _ clock: BudgetClock) {
        age += max(0, elapsed.milliseconds)
        // A first day begins with no clock, perhaps; that it is known now is no other day.
        if day == nil { day = clock.today }
        if let today = clock.today, let day, today > day {
            begin(today)
        } else if age >= longest(clock) {
            // A day has passed at least; a date that is still to come was no date.
            begin(day.map { day in clock.today.flatMap { $0 < day ? $0 : nil } ?? day + 1 })
        }
    }

    /// By the date it goes on until midnight, unless the date stands still.
    private func longest(_ clock: BudgetClock) -> Int64 {
        day != nil && day == clock.today ? 2 * Self.length : Self.length
    }

    private mutating func begin(_ day: Int64?) {
        if age >= Self.quarter {
            // The busiest days count, and are forgotten slowly.
            usual = max(Self.ofWhole(small, in: age), (usual ?? 0) / 8 * 7)
        }
        self.day = day
        (age, small, sound, beside) = (0, 0, 0, 0)
    }

    /// Until it ends.
    func rest(_ clock: BudgetClock) -> Duration {
        guard let day, clock.today == day else { return .milliseconds(max(0, Self.length - age)) }
        return .milliseconds((day + 1) * Self.length - clock.stamp.wall.milliseconds)
    }

    /// What so many bytes in so long come to in a whole day.
    private static func ofWhole(_ bytes: Int64, in time: Int64) -> Int64 {
        Int64(Double(bytes) / Double(time) * Double(length))
    }

    // MARK: Bytes

    /// Spent of the budget.
    var spent: Int64 { small + sound + (underWay.map { $0.share == .beside ? 0 : $0.bytes } ?? 0) }

    var mayGoBeside: Bool { beside == 0 }

    /// What the small streams need for `rest` of the day, by what is known of a whole one.
    ///
    /// Of a first day nothing is known but that half a budget should do.
    func reserve(of budget: Int64, for rest: Duration) -> Int64 {
        let need = max(Self.ofWhole(small, in: max(age, Self.quarter)), usual ?? budget / 2)
        return Int64(Double(need) * Double(max(0, rest.milliseconds)) / Double(Self.length))
    }

    mutating func begin(_ request: Request) {
        settle()
        underWay = request
    }

    mutating func end(_ spent: Request) {
        underWay = nil
        add(spent)
    }

    /// A request that did not end counts whole.
    mutating func settle() {
        underWay.map { add($0) }
        underWay = nil
    }

    mutating func add(_ request: Request) {
        switch request.share {
        case .small: small += request.bytes
        case .sound: sound += request.bytes
        case .beside: beside += request.bytes
        }
    }
}
