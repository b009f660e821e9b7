// Tracks which sequence numbers of a stream are frozen or settled; all others are pending.
import Host
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

    /// All frozen numbers, as ascending ranges.
    var ranges: [ClosedRange<Int64>] { (through > 0 ? [1...through] : []) + islands }

    init() {}

    /// Ascending, neither touching nor overlapping; too long to check on a device.
    private var isOrdered: Bool {
        var end = through
        return islands.allSatisfy { island in
            defer { end = island.upperBound }
            return island.lowerBound > end + 1
        }
    }

    /// `ranges` may be in any order.
    init(through: Int64, _ ranges: [ClosedRange<Int64>]) {
        self.through = through
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if islands.isEmpty, range.lowerBound <= self.through + 1 {
                self.through = max(self.through, range.upperBound)
            } else if let last = islands.last, range.lowerBound <= last.upperBound + 1 {
                islands[islands.count - 1] =
                    last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                islands.append(range)
            }
        }
        assert(isOrdered, "islands ascend")
    }

    /// Marks a range as frozen; parts of it may be frozen already.
    mutating func insert(_ range: ClosedRange<Int64>) {
        defer { assert(isOrdered, "islands ascend") }
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
        // Of most ranges nothing is there.
        if range.lowerBound <= last { remove([range]) }
    }

    /// Marks ranges as pending again, in one pass; they are ascending and do not overlap.
    mutating func remove(_ removed: [ClosedRange<Int64>]) {
        var (rest, kept): (ArraySlice, [ClosedRange<Int64>]) = (removed[...], [])
        for range in ranges {
            var next = range.lowerBound
            while let first = rest.first, first.lowerBound <= range.upperBound {
                if first.lowerBound > next { kept.append(next...(first.lowerBound - 1)) }
                next = max(next, first.upperBound + 1)
                // It may go on in the next range.
                if first.upperBound >= range.upperBound { break }
                rest.removeFirst()
            }
            if next <= range.upperBound { kept.append(next...range.upperBound) }
        }
        assert(
            zip(removed, removed.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound },
            "removed ranges ascend"
        )
        self = Self(through: 0, kept)
    }

    /// Adds ranges in one pass.
    mutating func insert(_ more: [ClosedRange<Int64>]) { self = Self(through: 0, ranges + more) }

    /// Freezes everything up to `number` and merges the islands it reaches.
    private mutating func settle(_ number: Int64) {
        mustHold(number >= through, "a settled number stays settled")
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
        let last = min(newest, islands.first.map { $0.lowerBound - 1 } ?? newest)
        return through < last ? (through + 1)...last : nil
    }

    /// Returns the newest pending numbers, down to the last island.
    func newest(upTo newest: Int64) -> ClosedRange<Int64>? {
        var gap = newest
        for island in islands.reversed() {
            if island.upperBound < gap { return (island.upperBound + 1)...gap }
            gap = min(gap, island.lowerBound - 1)
        }
        return through < gap ? (through + 1)...gap : nil
    }

    /// Whether every number of a range is pending.
    func isPending(_ range: ClosedRange<Int64>) -> Bool {
        range.lowerBound > through && !islands.contains { $0.overlaps(range) }
    }

    /// Whether every number is in the other, too.
    func isPart(of other: Self) -> Bool {
        var rest = self
        rest.remove(other.ranges)
        return rest.last == 0
    }

    /// Returns what is in both, ascending.
    func common(with other: Self) -> [ClosedRange<Int64>] {
        var (rest, common) = (self, self)
        rest.remove(other.ranges)
        common.remove(rest.ranges)
        return common.ranges
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
