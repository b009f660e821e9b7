// Finds when the schedule of a source was changed, from its effort.
import Host
import ServerBase

/// When a source was to be off on a day, for each hour in UTC.
private struct ScheduledDay {
    private static let hour: Int64 = 3_600_000

    /// The day, in days since 1970.
    let number: Int64
    /// Milliseconds scheduled off, of each hour.
    private(set) var off = [Int64](repeating: 0, count: 24)
    private var known: Int64 = 0
    private var starts: [Int64] = []

    init(_ number: Int64) { self.number = number }

    /// True if all of the day is either recorded or scheduled off.
    var isComplete: Bool { known == 24 * Self.hour }

    /// Adds the part of an interval that lies in the day.
    mutating func add(_ interval: EffortInterval) {
        guard ["recorded", "scheduled_off"].contains(interval.state) else { return }
        let start = number * Day.milliseconds
        for hour in 0..<24 {
            let begin = start + Int64(hour) * Self.hour
            let (from, to) = (max(interval.from, begin), min(interval.to, begin + Self.hour))
            guard from < to else { continue }
            known += to - from
            if interval.state == "scheduled_off" { off[hour] += to - from }
        }
        starts.append(interval.from)
    }

    /// Returns the time by which two days differ, in milliseconds.
    func difference(from other: Self) -> Int64 {
        zip(off, other.off).reduce(0) { $0 + abs($1.0 - $1.1) }
    }

    /// Returns when the day began to differ from another one.
    func firstDifference(from other: Self) -> Int64 {
        let hour = zip(off, other.off).map { abs($0 - $1) }.firstIndex { $0 > Self.hour / 4 } ?? 0
        let begin = number * Day.milliseconds + Int64(hour) * Self.hour
        return starts.filter { begin <= $0 && $0 < begin + Self.hour }.min() ?? begin
    }
}

/// The times at which a source's schedule became another one.
///
/// The records do not have the schedule itself. It counts as changed if the hours in which the
/// source was to be off differ by nearly two hours between days without a failure, a week apart at
/// most: the sun moves windows by less.
enum ScheduleChanges {
    private static let least: Int64 = 6_900_000
    private static let longestPause: Int64 = 7

    /// Returns the changes in order; `effort`: one source's intervals, in order.
    static func times(_ effort: [EffortInterval]) -> [Int64] {
        var (changes, days) = ([Int64](), [Int64: ScheduledDay]())
        for interval in effort where interval.isDeployed {
            let (first, last) = (
                interval.from.floorDivided(by: Day.milliseconds),
                (interval.to - 1).floorDivided(by: Day.milliseconds)
            )
            for number in first...last { days[number, default: ScheduledDay(number)].add(interval) }
        }
        var before: ScheduledDay?
        var isAfterChange = false
        for day in days.values.filter(\.isComplete).sorted(by: { $0.number < $1.number }) {
            defer { before = day }
            guard let known = before, day.number - known.number <= longestPause else { continue }
            // The day of a change has something of both schedules.
            guard !isAfterChange else {
                isAfterChange = false
                continue
            }
            guard day.difference(from: known) >= least else { continue }
            changes.append(day.firstDifference(from: known))
            isAfterChange = true
        }
        return changes
    }
}
