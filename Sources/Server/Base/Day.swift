// A UTC day, parsed from a folder name.
import Host

/// A day such as `2026-11-22`, with its start and end.
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
}
