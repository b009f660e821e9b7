// Which dates a receiver may give.
import Host

/// The dates that are believed of a receiver.
///
/// A receiver counts weeks in ten bits: after 1024 of them (19.6 years) it is back at the date before. So one
/// such span, from the release of this program on, holds each date that can be right, and none of those that are
/// off by a rollover of what is right.
enum ReceiverDates {
    static let sinceRelease =
        WallTime.release..<WallTime.release + .seconds(1024 * 7 * 86_400)

    /// Why a receiver's date is not believed, in words for `status`; nil if it is.
    static func doubt(_ time: WallTime) -> String? {
        guard !sinceRelease.contains(time) else { return nil }
        let why = time < sinceRelease.lowerBound ? "before this release" : "implausible"
        return "its date \(time.rfc3339.prefix(10)) is \(why), not used"
    }
}
