// Which fixes are not to be believed, and why.
internal import Host
internal import Queue
internal import Streams

/// Why a fix is not kept, in words for `status`.
enum Refusal: Equatable {
    /// The receiver's date is before this release: before its last week rollover, or from its battery clock.
    case past(WallTime)
    /// 1024 weeks after the release or more.
    case future(WallTime)
    case late(Duration)
    /// Latitude and longitude both 0: a receiver's memory before its first fix.
    case nowhere
    /// Metres of error.
    case vague(Double)
    /// Metres from the fix before.
    case jump(Double)

    var message: String {
        switch self {
        case .past(let time): "receiver's date \(time.rfc3339.prefix(10)) is before this release"
        case .future(let time): "receiver's date \(time.rfc3339.prefix(10)) is implausible"
        case .late(let age): "fixes come \(age.milliseconds / 1000) s late"
        case .nowhere: "receiver says latitude 0, longitude 0"
        case .vague(let metres): "error estimate of \(Int(metres)) m"
        case .jump(let metres): "jump of \(Int(metres / 1000)) km"
        }
    }

    /// It ends only when somebody looks after the receiver.
    var isLasting: Bool {
        switch self {
        case .past, .future: true
        case .late, .nowhere, .vague, .jump: false
        }
    }
}

/// Judges one fix after the other.
struct FixJudge {
    /// A fix with a larger error says less than the site's own address; gpsd's estimate for the worst geometry
    /// that receivers give a fix for (a dilution of 50) is just below.
    static let accuracyLimit = 1000.0
    /// m/s: an airliner with the jet stream behind it.
    static let speedLimit = 350.0
    /// Metres that a fix may be off beyond its error estimate.
    static let slack = 100.0
    /// Fixes that agree on a place that could not be reached are believed: then the one before was wrong.
    static let proof = 3
    /// Degrees, some 1 m: what is closer to 0/0 is no place.
    private static let nowhere = 1e-5

    private let dates: ReceiverDates
    private var freshness = Freshness()
    private var last: Fix?
    private var elsewhere: [Fix] = []

    init(dates: ReceiverDates) {
        self.dates = dates
    }

    /// Why the fix is not to be kept; nil if it is good.
    mutating func judge(_ fix: Fix, now: BootInstant) -> Refusal? {
        if let time = fix.receiverTime {
            if let reason = judge(time) { return reason }
            let age = freshness.age(of: time, at: fix.stamp.boot)
            if age > Freshness.limit { return .late(age) }
        }
        if now - fix.stamp.boot > Freshness.limit { return .late(now - fix.stamp.boot) }
        if abs(fix.latitude) < Self.nowhere, abs(fix.longitude) < Self.nowhere { return .nowhere }
        if let error = fix.horizontalAccuracy, error > Self.accuracyLimit { return .vague(error) }
        return jump(fix)
    }

    /// Why a receiver's date is not believed.
    func judge(_ time: WallTime?) -> Refusal? {
        guard let time, !dates.contains(time) else { return nil }
        return time < dates.range.lowerBound ? .past(time) : .future(time)
    }

    private mutating func jump(_ fix: Fix) -> Refusal? {
        if let last, !Self.isReachable(last, fix) {
            if let other = elsewhere.last, !Self.isReachable(other, fix) { elsewhere = [] }
            elsewhere.append(fix)
            if elsewhere.count < Self.proof { return .jump(FixLimit.metres(last, fix)) }
        }
        last = fix
        elsewhere = []
        return nil
    }

    private static func isReachable(_ from: Fix, _ to: Fix) -> Bool {
        let seconds = (to.stamp.boot - from.stamp.boot).inSeconds
        let errors = (from.horizontalAccuracy ?? 0) + (to.horizontalAccuracy ?? 0)
        return FixLimit.metres(from, to) <= speedLimit * max(0, seconds) + slack + errors
    }
}
