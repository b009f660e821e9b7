// Which dates a receiver may give.
package import Host

/// The dates that are believed of a receiver.
///
/// A receiver counts weeks in ten bits: after 1024 of them (19.6 years) it is back at the date before. So one
/// such span, from the release of this program on, holds each date that can be right, and none of those that are
/// off by a rollover of what is right.
package struct ReceiverDates: Sendable, Equatable {
    package var range: Range<WallTime>

    package init(_ range: Range<WallTime>) {
        self.range = range
    }

    package static let sinceRelease = Self(
        WallTime.release..<WallTime.release + .seconds(1024 * 7 * 86_400)
    )

    func contains(_ time: WallTime) -> Bool { range.contains(time) }
}
