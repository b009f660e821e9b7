// Decides when a GNSS receiver's time is evidence for the gateway's clock.
import Host
import Records

/// Believes a GNSS receiver's time once three 3D fixes in a row agree on it (gpsd_json(5), TPV
/// `time`).
///
/// Without a fix, or at its first one, a receiver may give times from its battery clock, from
/// before its last week rollover, or without leap seconds. Its time never sets the system clock; it
/// only dates records.
struct ReceiverTime: Sendable {
    /// Fixes in a row that must agree.
    static let fixes = 3
    /// Milliseconds by which they may differ, against the boot clock.
    static let agreement: Int64 = 1000
    /// Minimum spacing: delayed reports arrive in one batch, and agree.
    static let spacing = Duration.milliseconds(500)

    /// The newest fixes: receiver time against boot time.
    private var recent: [Stamp] = []

    /// Adds a believed fix; returns a boot time and the right wall time then, once known.
    mutating func add(_ fix: Fix) -> Stamp? {
        // The same time again is a late part of the same epoch, or a stuck receiver.
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

    /// Forgets the fixes, because the receiver has lost its fix.
    mutating func forget() { recent.removeAll(keepingCapacity: true) }

    /// The fix with the least delay, if enough fixes agree.
    private var agreed: Stamp? {
        guard recent.count == Self.fixes, let best = recent.max(by: { $0.lead < $1.lead }),
            let worst = recent.min(by: { $0.lead < $1.lead }),
            best.lead - worst.lead <= Self.agreement
        else { return nil }
        return best
    }
}

extension Stamp {
    /// Wall time minus boot time in ms: constant for a clock that is not stepped.
    fileprivate var lead: Int64 { wall.milliseconds &- boot.milliseconds }
}
