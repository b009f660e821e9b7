// Hours of the day without automatic uploads.
import Configuration
package import Host

/// A span of each day, possibly over midnight, at a fixed offset from UTC.
///
/// It does not use the device's time zone: many devices have none set, and daylight saving time
/// would silently move the hours twice a year.
package struct QuietHours: Sendable, Equatable {
    /// Minutes since midnight; never equal.
    private let start: Int
    private let end: Int
    /// The offset from UTC in minutes, positive to the east.
    private let offset: Int

    private static let day = 1440

    /// Parses `22:00-06:00`, which is UTC, or `22:00-06:00 +02:00`; nil for anything else and for a
    /// whole day.
    package init?(_ text: String) {
        let parts = text.split(separator: " ")
        let times = parts.first?.split(separator: "-", omittingEmptySubsequences: false) ?? []
        guard (1...2).contains(parts.count), times.count == 2,
            let start = minutes(ofTime: times[0]), let end = minutes(ofTime: times[1]),
            start % Self.day != end % Self.day,
            let offset = parts.count == 1 ? 0 : minutes(ofOffset: parts[1])
        else { return nil }
        (self.start, self.end, self.offset) = (start % Self.day, end % Self.day, offset)
    }

    /// The example in the documentation.
    static let example = QuietHours(from: 22 * 60, to: 6 * 60)

    private init(from start: Int, to end: Int) { (self.start, self.end, offset) = (start, end, 0) }

    /// The form that `init` parses.
    package var text: String {
        let hours = "\(timeText(start))-\(timeText(end))"
        return offset == 0 ? hours : "\(hours) \(offsetText(offset))"
    }

    // MARK: Evaluation

    /// Returns how long the quiet hours still last; nil outside of them.
    package func left(at wall: WallTime) -> Duration? {
        let (since, length) = (since(wall), length)
        return since < length ? length - since : nil
    }

    /// The quiet time at the end of a UTC day whose midnight lies within them.
    var tail: Duration {
        let midnight = WallTime(milliseconds: 0)
        let since = since(midnight)
        return since > .zero && since <= length ? since : .zero
    }

    /// The time per day outside quiet hours.
    package var open: Duration { .days(1) - length }

    private var length: Duration { Self.wrapped(Int64(end - start) * 60_000) }

    /// Returns the time since they last began, at most a day.
    private func since(_ wall: WallTime) -> Duration {
        Self.wrapped(wall.milliseconds % 86_400_000 + Int64(offset - start) * 60_000)
    }

    private static func wrapped(_ milliseconds: Int64) -> Duration {
        let rest = milliseconds % 86_400_000
        return .milliseconds(rest < 0 ? rest + 86_400_000 : rest)
    }
}
