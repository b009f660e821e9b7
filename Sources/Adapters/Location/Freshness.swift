// Measures a fix's delay: the GNSS receiver's time against the boot clock, which is never stepped.
import Host

/// Finds fixes that were delayed: in gpsd while it was stopped, or in a socket while we were.
///
/// Fixes that arrive in one batch differ in receiver time minus boot time by their delays. A fix is
/// as old as this difference is below the largest of the last two minutes. A receiver that steps
/// its time back (leap seconds) looks the same, but goes on to agree with itself while boot time
/// passes, which a batch of old fixes cannot.
struct Freshness {
    /// Older fixes are not stored.
    static let limit = Duration.seconds(10)
    /// Fixes that agree for this long are believed, whatever came before.
    static let proof = Duration.seconds(10)
    private static let minute = Duration.seconds(60)
    private static let agreement: Int64 = 1000

    /// Receiver time minus boot time, ms: the largest in this minute and in the previous one.
    private var largest: (now: Int64, before: Int64)?
    private var minuteBegan = BootInstant(nanoseconds: 0)
    private var late: (lead: Int64, since: BootInstant)?

    /// Returns the age of a fix with receiver time `time` that arrived at `boot`.
    mutating func age(of time: WallTime, at boot: BootInstant) -> Duration {
        let lead = time.milliseconds &- boot.milliseconds
        guard let largest else {
            begin(lead, boot)
            return .zero
        }
        let behind = Duration.milliseconds(max(largest.now, largest.before) - lead)
        if behind > Self.limit, !isProven(lead, boot) { return behind }
        if behind > Self.limit {
            begin(lead, boot)
            return .zero
        }
        late = nil
        // The clocks may drift apart, so values older than two minutes expire.
        if boot - minuteBegan >= Self.minute {
            self.largest = (lead, largest.now)
            minuteBegan = boot
        } else {
            self.largest = (max(largest.now, lead), largest.before)
        }
        return max(.zero, behind)
    }

    private mutating func begin(_ lead: Int64, _ boot: BootInstant) {
        largest = (lead, lead)
        minuteBegan = boot
        late = nil
    }

    private mutating func isProven(_ lead: Int64, _ boot: BootInstant) -> Bool {
        guard let late, abs(lead - late.lead) <= Self.agreement else {
            self.late = (lead, boot)
            return false
        }
        return boot - late.since >= Self.proof
    }
}
