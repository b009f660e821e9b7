// Gaps in the sequence numbers of a stream's records, which show what a restored server has lost.
import Host

/// The sequence numbers of one stream that have arrived: all from the first batch on, except the
/// holes.
///
/// A gateway numbers the records of a stream without gaps, but sends the newest between batches of
/// a backlog, so a hole may still fill up. One that stays was evicted or refused on the device, or
/// was stored here after the backup that the server was restored from.
struct SequenceHoles: Equatable {
    /// The number of holes remembered, largest first.
    private static let maximum = 50
    /// A higher number is ignored as invalid.
    private static let highest: Int64 = 1 << 50

    /// One more than the highest number.
    private(set) var next: Int64
    /// In ascending order.
    private(set) var holes: [ClosedRange<Int64>]

    /// Returns the range that a batch declares; nil if it cannot be sequence numbers.
    static func range(from first: Int64?, to last: Int64?) -> ClosedRange<Int64>? {
        guard let first, let last, first >= 0, first <= last, last < highest else { return nil }
        return first...last
    }

    init(next: Int64, holes: [ClosedRange<Int64>] = []) {
        (self.next, self.holes) = (next, holes)
    }

    /// Records that these numbers have arrived.
    mutating func record(_ range: ClosedRange<Int64>) {
        holes = holes.flatMap { hole -> [ClosedRange<Int64>] in
            guard hole.overlaps(range) else { return [hole] }
            var rest: [ClosedRange<Int64>] = []
            if hole.lowerBound < range.lowerBound {
                rest.append(hole.lowerBound...range.lowerBound - 1)
            }
            if range.upperBound < hole.upperBound {
                rest.append(range.upperBound + 1...hole.upperBound)
            }
            return rest
        }
        if next < range.lowerBound { holes.append(next...range.lowerBound - 1) }
        next = max(next, range.upperBound + 1)
        invariant(
            holes.last.map { $0.upperBound < next } ?? true,
            "a hole lies below the next number"
        )
        guard holes.count > Self.maximum, let least = holes.min(by: { $0.count < $1.count }) else {
            return
        }
        holes.removeAll { $0 == least }
    }

    // MARK: As text: `21-30 41-50`

    /// Ignores holes out of order, as a damaged database may hold them.
    init(next: Int64, text: String) {
        holes = []
        for part in text.split(separator: " ") where holes.count < Self.maximum {
            let ends = part.split(separator: "-").compactMap { Int64($0) }
            guard ends.count == 2, let hole = Self.range(from: ends[0], to: ends[1]),
                holes.last.map({ $0.upperBound < hole.lowerBound }) ?? true
            else { continue }
            holes.append(hole)
        }
        self.next = max(min(next, Self.highest), holes.last.map { $0.upperBound + 1 } ?? 0)
    }

    var text: String {
        holes.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: " ")
    }
}
