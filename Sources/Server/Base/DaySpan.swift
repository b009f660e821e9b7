// Calendar days in a row, as an address names them.

/// One day, `2026-10-05`, or several, `2026-10-05..2026-10-11`; the last one is included.
package struct DaySpan: Equatable {
    package static let maxDays = 366

    package let first: Day
    package let last: Day

    /// Nil for more days than a page shows; in any order.
    package init?(_ one: Day, _ other: Day) {
        (first, last) = one.start <= other.start ? (one, other) : (other, one)
        guard count <= Self.maxDays else { return nil }
    }

    /// Nil for a text that is not valid, and for days in the wrong order.
    package init?(_ name: String) {
        let isOne = name.utf8.count == 10
        guard isOne || (name.utf8.count == 22 && name.dropFirst(10).hasPrefix("..")),
            let first = Day(String(name.prefix(10))), let last = Day(String(name.suffix(10))),
            first.start <= last.start
        else { return nil }
        self.init(first, last)
    }

    package var count: Int { Int((last.start - first.start) / Day.milliseconds) + 1 }

    package var name: String { count == 1 ? first.name : "\(first.name)..\(last.name)" }

    /// Formats it for people: `Mon 2026-10-05 to Sun 2026-10-11`.
    package var title: String { count == 1 ? first.title : "\(first.title) to \(last.title)" }

    /// Returns as many days before (-1) or after (1) these; nil where the calendar ends.
    package func neighbour(_ direction: Int) -> DaySpan? {
        guard let first = first.adding(direction * count), let last = last.adding(direction * count)
        else { return nil }
        return DaySpan(first, last)
    }

    /// Returns so many days until the last one of these.
    package func ending(count: Int) -> DaySpan? {
        last.adding(1 - count).flatMap { DaySpan($0, last) }
    }
}
