// Rejects implausible fixes, with a reason for `status`.
import Host
import Records

/// The reason why a fix is not stored.
enum FixRefusal: Equatable {
    case late(Duration)
    /// The GNSS receiver repeats the same time.
    case stuck(WallTime)
    /// A fix that lacks its latitude or longitude.
    case placeless
    /// Latitude and longitude are both 0, as in a GNSS receiver's memory before its first fix.
    case nowhere
    /// The error estimate, in metres.
    case vague(Double)
    /// The distance from the previous fix, in metres.
    case jump(Double)

    var message: String {
        switch self {
        case .late(let age): "fixes come \(age.milliseconds / 1000) s late"
        case .stuck(let time): "GNSS receiver's time is stuck at \(time.rfc3339)"
        case .placeless: "GNSS receiver sends no latitude or no longitude"
        case .nowhere: "GNSS receiver reports latitude 0, longitude 0"
        case .vague(let metres): "error estimate of \(Int(metres)) m"
        case .jump(let metres): "jump of \(Int(metres / 1000)) km"
        }
    }
}

/// Evaluates the fixes of one GNSS receiver in order.
///
/// A wrong date alone does not reject a fix: after a week rollover the position is still right, and
/// a fix is dated by its arrival. Differences between such dates still reveal fixes that were
/// delayed.
struct FixEvaluator {
    /// Metres: a larger error says less than the site's postal address.
    ///
    /// gpsd's estimate for the worst geometry that receivers give a fix for (a dilution of 50) is
    /// just below.
    static let accuracyLimit = 1000.0
    /// m/s: an airliner with the jet stream behind it.
    static let speedLimit = 350.0
    /// Metres by which a fix may be off beyond its error estimate.
    static let slack = 100.0
    /// After this many fixes that agree on an unreachable position, the previous position is
    /// considered wrong.
    static let proof = 3
    /// Degrees, about 1 m: closer to 0/0 is not a real position.
    private static let nowhere = 1e-5

    private var freshness = Freshness()
    private var last: Fix?
    private var lastTime: WallTime?
    private var elsewhere: [Fix] = []

    /// Evaluates a fix; returns why it is rejected, or nil if it is good.
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
