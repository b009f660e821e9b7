// A calendar day: of the archive, which has days of UTC, or of a page's time zone.
import Host

/// A day such as `2026-11-22`, with its start and end in UTC.
package struct Day: Equatable {
    package static let milliseconds: Int64 = 86_400_000

    package let name: String
    /// Milliseconds since 1970.
    package let start: Int64

    package var end: Int64 { start + Self.milliseconds }

    package func start(ofHour hour: Int) -> Int64 { start + Int64(hour) * 3_600_000 }

    /// Nil if the text is not a calendar date.
    package init?(_ name: String) {
        guard name.utf8.count == 10, let start = WallTime(rfc3339: "\(name)T00:00:00Z") else {
            return nil
        }
        (self.name, self.start) = (name, start.milliseconds)
    }

    /// The UTC day of a time; years are limited to 0...9999.
    package init(of milliseconds: Int64) {
        name = String(WallTime(milliseconds: milliseconds).rfc3339.prefix(10))
        start = WallTime(rfc3339: "\(name)T00:00:00Z")?.milliseconds ?? 0
    }

    /// Nil where the calendar ends.
    package func adding(_ days: Int) -> Day? {
        let day = Day(of: start + Int64(days) * Self.milliseconds)
        return day.start - start == Int64(days) * Self.milliseconds ? day : nil
    }

    /// Formats it with its weekday: `Mon 2026-10-05`.
    package var title: String {
        // 1970 began on a Thursday.
        let number = (start / Self.milliseconds + 4) % 7
        let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        return "\(names[Int((number + 7) % 7)]) \(name)"
    }
}
