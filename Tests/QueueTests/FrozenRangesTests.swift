import Testing

@testable import Queue
import QueueSupport
import Records

@Suite struct FrozenRangesTests {
    /// A slow reference implementation.
    private struct Model {
        var frozen: Set<Int64> = []

        func pending(upTo newest: Int64) -> [Int64] {
            guard newest > 0 else { return [] }
            return (1...newest).filter { !frozen.contains($0) }
        }
    }

    @Test func newestFirst_leavesTheOlderPending() {
        var frozen = FrozenRanges(through: 10, [])
        frozen.insert(91...100)
        #expect(frozen.through == 10)
        #expect(frozen.oldest(upTo: 120) == 11...90)
        #expect(frozen.newest(upTo: 120) == 101...120)
        #expect(frozen.newest(upTo: 100) == 11...90)
        #expect(frozen.pending(upTo: 120) == 100)
        #expect(!frozen.isPending(90...91))
        frozen.insert(11...90)
        #expect(frozen.through == 100)
        #expect(frozen.islands.isEmpty)
        #expect(frozen.oldest(upTo: 100) == nil)
        #expect(frozen.newest(upTo: 100) == nil)
    }

    @Test func manyAtOnce_agreeWithOneByOne() {
        var numbers = SystemRandomNumberGenerator()
        func some() -> (FrozenRanges, Set<Int64>) {
            let members = Set(
                (0..<Int.random(in: 0...30, using: &numbers)).map { _ in
                    Int64.random(in: 1...40, using: &numbers)
                }
            )
            return (FrozenRanges(through: 0, members.map { $0...$0 }), members)
        }
        func members(_ ranges: [ClosedRange<Int64>]) -> Set<Int64> { Set(ranges.flatMap { $0 }) }
        for _ in 0..<300 {
            let ((left, lefts), (right, rights)) = (some(), some())
            #expect(members(left.ranges) == lefts)
            #expect(members(left.common(with: right)) == lefts.intersection(rights))
            var (less, more) = (left, left)
            less.remove(right.ranges)
            more.insert(right.ranges)
            #expect(members(less.ranges) == lefts.subtracting(rights))
            #expect(members(more.ranges) == lefts.union(rights))
            #expect(more.ranges == FrozenRanges(through: 0, more.ranges.reversed()).ranges)
        }
    }

    @Test func anyOrder_agreesWithCountingEachNumber() {
        var numbers = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var frozen = FrozenRanges()
            var model = Model()
            for _ in 0..<20 {
                let first = Int64.random(in: 1...60, using: &numbers)
                let range = first...(first + Int64.random(in: 0...12, using: &numbers))
                #expect(frozen.isPending(range) == range.allSatisfy { !model.frozen.contains($0) })
                if Int.random(in: 0..<4, using: &numbers) == 0 {
                    frozen.remove(range)
                    model.frozen.subtract(range)
                } else {
                    frozen.insert(range)
                    model.frozen.formUnion(range)
                }
                let pending = model.pending(upTo: 80)
                #expect(frozen.pending(upTo: 80) == Int64(pending.count))
                #expect(frozen.oldest(upTo: 80)?.lowerBound == pending.first)
                #expect(frozen.newest(upTo: 80)?.upperBound == pending.last)
                let again = FrozenRanges(
                    through: frozen.through,
                    frozen.islands.reversed()
                )
                #expect(again == frozen)
                // Also below the last island.
                let end = Int64.random(in: 0...80, using: &numbers)
                let early = model.pending(upTo: end)
                #expect(frozen.oldest(upTo: end)?.lowerBound == early.first)
                #expect(frozen.newest(upTo: end)?.upperBound == early.last)
                #expect(frozen.oldest(upTo: end)?.upperBound ?? 0 <= end)
            }
        }
    }
}
