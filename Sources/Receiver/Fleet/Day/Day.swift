// A day in UTC, as folders are called.
import Host

/// `2026-11-22`, and its first and last moment.
struct Day: Equatable {
    static let milliseconds: Int64 = 86_400_000

    let name: String
    /// Milliseconds since 1970.
    let start: Int64

    var end: Int64 { start + Self.milliseconds }

    /// Nil for a text that is no day of the calendar.
    init?(_ name: String) {
        guard name.utf8.count == 10, let start = WallTime(rfc3339: "\(name)T00:00:00Z") else {
            return nil
        }
        (self.name, self.start) = (name, start.milliseconds)
    }
}
