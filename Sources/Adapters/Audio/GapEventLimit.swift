// Limits how many gaps in the audio are reported as events.
import Host

/// Allows 12 gap events per hour; further gaps are only counted.
///
/// A broken cable causes one gap per second for weeks.
struct GapEventLimit {
    static let limit = 12
    private static let hour = Duration.seconds(3600)

    private var began: BootInstant?
    private var reported = 0

    /// Returns true if the limit allows an event for a gap now, and counts it.
    mutating func takePermit(at now: BootInstant) -> Bool {
        if let began, now - began >= Self.hour { self.began = nil }
        if began == nil { (began, reported) = (now, 0) }
        reported += 1
        return reported <= Self.limit
    }
}
