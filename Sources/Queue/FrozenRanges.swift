// Tracks which sequence numbers of a stream are frozen or settled; all others are pending.
import Records
import SQLite

/// All numbers up to a watermark, and islands above it: batches of the newest records sent first.
struct FrozenRanges: Sendable, Equatable {
    /// Every number up to here is in a batch or settled.
    private(set) var through: Int64 = 0
    /// Ranges above `through` that are in batches: ascending, neither touching nor overlapping.
    private(set) var islands: [ClosedRange<Int64>] = []

    /// The last frozen number; 0 if there is none.
    var last: Int64 { islands.last?.upperBound ?? through }

    init() {}

    /// `ranges` may be in any order.
    init(through: Int64, _ ranges: [ClosedRange<Int64>]) {
        self.through = through
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) { insert(range) }
    }

    /// Marks a range as frozen; parts of it may be frozen already.
    mutating func insert(_ range: ClosedRange<Int64>) {
        var (lower, upper) = (range.lowerBound, range.upperBound)
        islands.removeAll { island in
            guard island.lowerBound <= upper + 1, island.upperBound >= lower - 1 else {
                return false
            }
            lower = min(lower, island.lowerBound)
            upper = max(upper, island.upperBound)
            return true
        }
        guard lower > through + 1 else { return settle(max(through, upper)) }
        let place = islands.firstIndex { $0.lowerBound > upper } ?? islands.endIndex
        islands.insert(lower...upper, at: place)
    }

    /// Marks a range as pending again.
    mutating func remove(_ range: ClosedRange<Int64>) {
        let frozen = (through > 0 ? [1...through] : []) + islands
        let removed = Self(through: 0, [range])
        self = Self(through: 0, frozen.flatMap { removed.free(in: $0) })
    }

    /// Freezes everything up to `number` and merges the islands it reaches.
    private mutating func settle(_ number: Int64) {
        through = number
        while let first = islands.first, first.lowerBound <= through + 1 {
            through = max(through, first.upperBound)
            islands.removeFirst()
        }
    }

    /// Returns how many numbers up to `newest` are pending.
    func pending(upTo newest: Int64) -> Int64 {
        var pending = max(0, newest - through)
        for island in islands where island.lowerBound <= newest {
            pending -= min(newest, island.upperBound) - island.lowerBound + 1
        }
        return pending
    }

    /// Returns the oldest pending numbers, up to the first island.
    func oldest(upTo newest: Int64) -> ClosedRange<Int64>? {
        let last = islands.first.map { $0.lowerBound - 1 } ?? newest
        return through < last ? (through + 1)...last : nil
    }

    /// Returns the newest pending numbers, down to the last island.
    func newest(upTo newest: Int64) -> ClosedRange<Int64>? {
        var gap = newest
        for island in islands.reversed() {
            if island.upperBound < gap { return (island.upperBound + 1)...gap }
            gap = island.lowerBound - 1
        }
        return through < gap ? (through + 1)...gap : nil
    }

    /// Whether every number of a range is pending.
    func isPending(_ range: ClosedRange<Int64>) -> Bool {
        range.lowerBound > through && !islands.contains { $0.overlaps(range) }
    }

    /// Returns the parts of a range that are not frozen, ascending.
    func free(in range: ClosedRange<Int64>) -> [ClosedRange<Int64>] {
        var parts: [ClosedRange<Int64>] = []
        var next = max(range.lowerBound, through + 1)
        for island in islands where island.upperBound >= next {
            guard island.lowerBound <= range.upperBound else { break }
            if island.lowerBound > next { parts.append(next...(island.lowerBound - 1)) }
            next = island.upperBound + 1
        }
        if next <= range.upperBound { parts.append(next...range.upperBound) }
        return parts
    }
}
