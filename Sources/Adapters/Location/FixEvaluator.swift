// Which fixes are not to be believed, and why.
import Host
import Records

/// Why a fix is not kept, in words for `status`.
enum FixRefusal: Equatable {
    case late(Duration)
    /// The receiver gives the same time again and again.
    case stuck(WallTime)
    /// A fix that lacks its latitude or longitude.
    case placeless
    /// Latitude and longitude both 0: a receiver's memory before its first fix.
    case nowhere
    /// Metres of error.
    case vague(Double)
    /// Metres from the fix before.
    case jump(Double)

    var message: String {
        switch self {
        case .late(let age): "fixes come \(age.milliseconds / 1000) s late"
        case .stuck(let time): "receiver's time stands still at \(time.rfc3339)"
        case .placeless: "receiver gives no latitude or no longitude"
        case .nowhere: "receiver says latitude 0, longitude 0"
        case .vague(let metres): "error estimate of \(Int(metres)) m"
        case .jump(let metres): "jump of \(Int(metres / 1000)) km"
        }
    }
}

/// Judges one fix after the other.
///
/// A wrong date alone is no reason: a receiver that is a week rollover behind knows its place all the same, and a
/// fix is dated by when it came. Dates that agree with each other still tell which fixes waited somewhere.
struct FixEvaluator {
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

    private var freshness = Freshness()
    private var last: Fix?
    private var lastTime: WallTime?
    private var elsewhere: [Fix] = []

    /// Why the fix is not to be kept; nil if it is good.
    mutating func judge(_ fix: Fix, now: BootInstant) -> FixRefusal? {
        if let time = fix.receiverTime {
            defer { lastTime = time }
            let age = freshness.age(of: time, at: fix.stamp.boot)
            if age > Freshness.limit { return time == lastTime ? .stuck(time) : .late(age) }
        }
        if now - fix.stamp.boot > Freshness.limit { return .late(now - fix.stamp.boot) }
        if abs(fix.latitude) < Self.nowhere, abs(fix.longitude) < Self.nowhere { return .nowhere }
        if let error = fix.horizontalAccuracy, error > Self.accuracyLimit { return .vague(error) }
        return jump(fix)
    }

    private mutating func jump(_ fix: Fix) -> FixRefusal? {
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
