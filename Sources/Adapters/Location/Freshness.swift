// How old a fix is, by the receiver's time against the board's clock that is never stepped.
import Host

/// Finds fixes that waited somewhere: in gpsd while it was stopped, in a socket while we were.
///
/// The receiver's time less the boot time is the same for all fixes that come at once. One that is behind the
/// newest of the last two minutes by so much is as old. A receiver that corrects its time backwards (leap seconds)
/// looks the same, but goes on to agree with itself while boot time passes, which a gulp of old fixes cannot.
struct Freshness {
    /// Older fixes are not kept.
    static let limit = Duration.seconds(10)
    /// Fixes that agree for so long are believed, whatever was before.
    static let proof = Duration.seconds(10)
    private static let minute = Duration.seconds(60)
    private static let agreement: Int64 = 1000

    /// Time less boot time, ms: the largest of this minute and of the one before.
    private var largest: (now: Int64, before: Int64)?
    private var minuteBegan = BootInstant(nanoseconds: 0)
    private var late: (lead: Int64, since: BootInstant)?

    /// How old a fix of `time` is that came at `boot`.
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
        // The clocks may drift apart: what was long ago counts no more.
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
