// When the time that a receiver gives is evidence for the board's clock.
import Host
import Records

/// Believes a receiver's time once three 3D fixes in a row agree on it (gpsd_json(5), TPV `time`).
///
/// A receiver without a fix, or with a first one, gives times from its own battery clock, from before its
/// last week rollover, or without the leap seconds. Its time never sets a clock here, it only dates records.
struct ReceiverTime: Sendable {
    /// Fixes in a row that must agree.
    static let fixes = 3
    /// How far they may be apart, against the boot's own clock.
    static let agreement: Int64 = 1000
    /// How far they must be apart at least: reports that waited somewhere come in one gulp, and agree.
    static let spacing = Duration.milliseconds(500)

    /// The newest fixes: receiver's time against boot time.
    private var recent: [Stamp] = []

    /// Takes a fix that is believed; returns a boot time and the right wall time then, once known.
    mutating func add(_ fix: Fix) -> Stamp? {
        // The same time again is a late piece of the same epoch, or a receiver that stands still.
        guard let time = fix.receiverTime, time != recent.last?.wall else { return nil }
        guard fix.mode == .threeDimensional, ReceiverDates.sinceRelease.contains(time) else {
            forget()
            return nil
        }
        let boot = fix.stamp.boot
        if let last = recent.last, time < last.wall || boot <= last.boot { forget() }
        if let last = recent.last, boot - last.boot < Self.spacing { return nil }
        recent.append(Stamp(boot: boot, wall: time))
        recent.removeFirst(max(0, recent.count - Self.fixes))
        return agreed
    }

    /// The receiver has no fix.
    mutating func forget() { recent.removeAll(keepingCapacity: true) }

    /// The fix that came with the least delay, if enough of them agree.
    private var agreed: Stamp? {
        guard recent.count == Self.fixes, let best = recent.max(by: { $0.lead < $1.lead }),
            let worst = recent.min(by: { $0.lead < $1.lead }),
            best.lead - worst.lead <= Self.agreement
        else { return nil }
        return best
    }
}

extension Stamp {
    /// Wall time less boot time in ms: the same at every moment, for a clock that is not stepped.
    fileprivate var lead: Int64 { wall.milliseconds &- boot.milliseconds }
}
