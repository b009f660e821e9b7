// Finds where a device was at a time.
package import Host

/// The positions of one device, to find the one nearest to a time.
package struct PositionLog: Sendable {
    /// Milliseconds: a position further away from a recording says nothing about it.
    private static let reach: Int64 = 3_600_000
    /// Milliseconds: of positions closer to each other the first is kept.
    private static let step: Int64 = 5000

    private var entries: [(time: Int64, place: Recording.Place)] = []
    private var isSorted = true

    package init() {}

    /// Adds a position; in order of time it costs no sorting later.
    ///
    /// Positions that are not on the Earth are left out.
    package mutating func add(_ place: Recording.Place, at time: WallTime) {
        guard abs(place.latitude) <= 90, abs(place.longitude) <= 180 else { return }
        if let last = entries.last?.time {
            let passed = time.milliseconds.subtractingReportingOverflow(last)
            guard passed.overflow || passed.partialValue < 0 || passed.partialValue >= Self.step
            else { return }
            if time.milliseconds < last { isSorted = false }
        }
        entries.append((time.milliseconds, place))
    }

    /// Returns the position nearest to a time, an hour away at most.
    package mutating func place(at time: WallTime) -> Recording.Place? {
        if !isSorted { entries.sort { $0.time < $1.time } }
        isSorted = true
        let time = time.milliseconds
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].time < time { low = middle + 1 } else { high = middle }
        }
        let near = entries[max(0, low - 1)..<min(entries.count, low + 1)]
        let nearest = near.min { abs($0.time - time) < abs($1.time - time) }
        return nearest.flatMap { abs($0.time - time) <= Self.reach ? $0.place : nil }
    }
}
