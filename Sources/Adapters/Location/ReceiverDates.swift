// The range of dates that are believed of a GNSS receiver.
import Host

/// Checks a GNSS receiver's date for a week rollover.
///
/// A receiver counts weeks in ten bits, so after 1024 weeks (19.6 years) its date falls back to the
/// start. One such span, from the release of this program on, contains every correct date and none
/// that is a rollover off.
enum ReceiverDates {
    static let sinceRelease =
        WallTime.release..<WallTime.release + .seconds(1024 * 7 * 86_400)

    /// Returns why a date is not believed, as a message for `status`; nil if it is.
    static func doubt(_ time: WallTime) -> String? {
        guard !sinceRelease.contains(time) else { return nil }
        let why = time < sinceRelease.lowerBound ? "before this release" : "implausible"
        return "its date \(time.rfc3339.prefix(10)) is \(why), not used"
    }
}
