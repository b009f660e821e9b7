// Decides whether a fix, and the GNSS receiver's time in it, is believed.
import Host
import Records

/// The reason why a fix is not stored.
enum FixRefusal: Equatable {
    case late(Duration)
    /// The GNSS receiver repeats the same time.
    case stuck(WallTime)
    /// A GNSS receiver in its simulator mode makes the fix up.
    case simulated
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
        case .simulated: "GNSS receiver simulates its fixes"
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
/// delayed: in gpsd while it was stopped, or in a socket while we were.
struct FixEvaluator {
    /// Older fixes are not stored.
    private static let lateLimit = Duration.seconds(10)
    private static let minute = Duration.seconds(60)
    /// Metres: a larger error says less than the site's postal address.
    ///
    /// gpsd's estimate for the worst geometry that receivers give a fix for (a dilution of 50) is
    /// just below.
    private static let accuracyLimit = 1000.0
    /// m/s: an airliner with the jet stream behind it.
    private static let speedLimit = 350.0
    /// Metres by which a fix may be off beyond its error estimate.
    private static let slack = 100.0
    /// After this many fixes that agree on an unreachable position, the previous position is
    /// considered wrong.
    private static let jumpProof = 3
    /// Degrees, about 1 m: closer to 0/0 is not a real position.
    private static let nowhere = 1e-5

    /// Receiver time minus boot time, ms: the largest in this minute and in the previous one.
    private var largest: (now: Int64, before: Int64)?
    private var minuteBegan = BootInstant(nanoseconds: 0)
    private var last: Fix?
    private var lastTime: WallTime?
    private var elsewhere: [Fix] = []
    /// The first and the newest report of a loss of the fix, without a silence between them.
    private var loss: (first: BootInstant, newest: BootInstant)?

    /// Handles a report without a fix, which arrived at `now`.
    mutating func lostFix(at now: BootInstant) {
        let before = loss.flatMap { now - $0.newest <= Self.lateLimit ? $0.first : nil }
        loss = (before ?? now, now)
    }

    /// Evaluates a fix; returns why it is rejected, or nil if it is good.
    mutating func evaluate(_ fix: Fix, now: BootInstant) -> FixRefusal? {
        // While it had no fix it may have learned the leap seconds. The loss must have been heard as
        // it happened: reports that waited come in one batch, after a silence.
        if let loss = loss.take(), loss.newest - loss.first >= Self.lateLimit,
            fix.stamp.boot - loss.newest <= Self.lateLimit
        {
            largest = nil
        }
        if let time = fix.receiverTime {
            defer { lastTime = time }
            let age = age(of: Stamp(boot: fix.stamp.boot, wall: time))
            if age > Self.lateLimit { return time == lastTime ? .stuck(time) : .late(age) }
        }
        if now - fix.stamp.boot > Self.lateLimit { return .late(now - fix.stamp.boot) }
        if abs(fix.latitude) < Self.nowhere, abs(fix.longitude) < Self.nowhere { return .nowhere }
        if let error = fix.horizontalAccuracy, error > Self.accuracyLimit { return .vague(error) }
        return jump(fix)
    }

    /// Returns the age of a fix by the GNSS receiver's time and the boot time of its arrival.
    ///
    /// Fixes that arrive in one batch differ in receiver time minus boot time by their delays. A
    /// fix is as old as this difference is below the largest of the last two minutes. A time that
    /// goes back is a correction (leap seconds): what waited comes in order.
    private mutating func age(of time: Stamp) -> Duration {
        let lead = time.lead
        guard let known = largest, lastTime.map({ $0 <= time.wall }) ?? true else {
            (largest, minuteBegan) = ((lead, lead), time.boot)
            return .zero
        }
        let behind = Duration.milliseconds(max(known.now, known.before) - lead)
        if time.boot - minuteBegan >= Self.minute, time.wall != lastTime {
            // The clocks may drift apart, so values older than two minutes expire.
            (largest, minuteBegan) = ((lead, known.now), time.boot)
        } else {
            largest = (max(known.now, lead), known.before)
        }
        return max(.zero, behind)
    }

    private mutating func jump(_ fix: Fix) -> FixRefusal? {
        if let last, !Self.isReachable(last, fix) {
            if let other = elsewhere.last, !Self.isReachable(other, fix) { elsewhere = [] }
            elsewhere.append(fix)
            if elsewhere.count < Self.jumpProof { return .jump(last.metres(to: fix)) }
        }
        last = fix
        elsewhere = []
        return nil
    }

    private static func isReachable(_ from: Fix, _ to: Fix) -> Bool {
        let seconds = (to.stamp.boot - from.stamp.boot).inSeconds
        let errors = (from.horizontalAccuracy ?? 0) + (to.horizontalAccuracy ?? 0)
        return from.metres(to: to) <= speedLimit * max(0, seconds) + slack + errors
    }
}

/// Believes a GNSS receiver's time once three 3D fixes in a row agree on it (gpsd_json(5), TPV
/// `time`).
///
/// Without a fix, or at its first one, a receiver may give times from its battery clock, from
/// before its last week rollover, or without leap seconds. Its time never sets the system clock; it
/// only dates records.
struct ReceiverTime {
    /// Fixes in a row that must agree.
    private static let fixes = 3
    /// Milliseconds by which they may differ, against the boot clock.
    private static let agreement: Int64 = 1000
    /// Minimum spacing: delayed reports arrive in one batch, and agree.
    private static let spacing = Duration.milliseconds(500)
    /// The dates that are believed.
    ///
    /// A receiver counts weeks in ten bits, so after 1024 weeks (19.6 years) its date falls back to
    /// the start. One such span, from the release of this program on, contains every correct date
    /// and none that is a rollover off.
    private static let dates = WallTime.release..<WallTime.release + .seconds(1024 * 7 * 86_400)

    /// Returns why a date is not believed, as a message for `status`; nil if it is.
    static func doubt(_ time: WallTime) -> String? {
        guard !dates.contains(time) else { return nil }
        let why = time < dates.lowerBound ? "before this release" : "implausible"
        return "its date \(time.rfc3339.prefix(10)) is \(why), not used"
    }

    /// The newest fixes: receiver time against boot time.
    private var recent: [Stamp] = []

    /// Adds a believed fix; returns a boot time and the right wall time then, once known: that of
    /// the fix with the least delay.
    mutating func add(_ fix: Fix) -> Stamp? {
        // The same time again is a late part of the same epoch, or a stuck receiver.
        guard let time = fix.receiverTime, time != recent.last?.wall else { return nil }
        guard fix.mode == .threeDimensional, Self.dates.contains(time) else {
            forget()
            return nil
        }
        let boot = fix.stamp.boot
        if let last = recent.last, time < last.wall || boot <= last.boot { forget() }
        if let last = recent.last, boot - last.boot < Self.spacing { return nil }
        recent.append(Stamp(boot: boot, wall: time))
        recent.removeFirst(max(0, recent.count - Self.fixes))
        guard recent.count == Self.fixes, let best = recent.max(by: { $0.lead < $1.lead }),
            recent.allSatisfy({ best.lead - $0.lead <= Self.agreement })
        else { return nil }
        return best
    }

    /// Forgets the fixes, because the receiver has lost its fix.
    mutating func forget() { recent.removeAll(keepingCapacity: true) }
}

/// Admits at most one fix per interval, and only after a minimum distance in metres.
struct FixLimit {
    let interval: Duration
    let minDistance: Double
    private var last: Fix?

    init(interval: Duration, minDistance: Double) {
        (self.interval, self.minDistance) = (interval, minDistance)
    }

    mutating func admits(_ fix: Fix) -> Bool {
        if let last {
            // Epochs arrive slightly early or late; 100 ms early still counts as a full interval.
            guard fix.stamp.boot - last.stamp.boot >= interval - .milliseconds(100),
                minDistance <= 0 || last.metres(to: fix) >= minDistance
            else { return false }
        }
        last = fix
        return true
    }
}

extension Fix {
    func metres(to other: Fix) -> Double {
        Place(latitude: latitude, longitude: longitude)
            .metres(to: Place(latitude: other.latitude, longitude: other.longitude))
    }
}

extension Stamp {
    /// Wall time minus boot time in ms: constant for a clock that is not stepped.
    fileprivate var lead: Int64 { wall.milliseconds &- boot.milliseconds }
}
