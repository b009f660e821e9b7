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

    private static let minutes = 1440

    /// Parses `22:00-06:00`, which is UTC, or `22:00-06:00 +02:00`; nil for anything else and for a
    /// whole day.
    package init?(_ text: String) {
        let parts = text.split(separator: " ")
        let times = parts.first?.split(separator: "-", omittingEmptySubsequences: false) ?? []
        guard (1...2).contains(parts.count), times.count == 2,
            let start = Self.time(times[0]), let end = Self.time(times[1]),
            start % Self.minutes != end % Self.minutes,
            let offset = parts.count == 1 ? 0 : Self.offset(parts[1])
        else { return nil }
        (self.start, self.end, self.offset) = (start % Self.minutes, end % Self.minutes, offset)
    }

    /// The example in the documentation.
    static let example = QuietHours(from: 22 * 60, to: 6 * 60)

    private init(from start: Int, to end: Int) { (self.start, self.end, offset) = (start, end, 0) }

    /// Parses `06:00`, up to `24:00`, into minutes.
    private static func time(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard text.utf8.count == 5, text.utf8.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ":") }),
            parts.count == 2, let hours = Int(parts[0]), let minutes = Int(parts[1]), minutes < 60
        else { return nil }
        let time = hours * 60 + minutes
        return time <= Self.minutes ? time : nil
    }

    /// Parses `+02:00` into minutes; no zone is more than 14 hours from UTC.
    private static func offset(_ text: Substring) -> Int? {
        if text == "UTC" { return 0 }
        guard let sign = text.first, "+-".contains(sign), let time = time(text.dropFirst()),
            time <= 14 * 60
        else { return nil }
        return sign == "-" ? -time : time
    }

    /// The form that `init` parses.
    package var text: String {
        let hours = "\(Self.text(start))-\(Self.text(end))"
        if offset == 0 { return hours }
        return "\(hours) \(offset < 0 ? "-" : "+")\(Self.text(abs(offset)))"
    }

    private static func text(_ minutes: Int) -> String {
        [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
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
    var open: Duration { .days(1) - length }

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
