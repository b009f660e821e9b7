// The random numbers of a simulated world.

/// SplitMix64: the same numbers for the same seed.
package struct Chance: RandomNumberGenerator {
    private var state: UInt64

    package init(_ seed: UInt64) {
        state = seed &* 0x9E37_79B9_7F4A_7C15 ^ 0x5DEE_CE66_D1CE_4E5B
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns true with probability 1/count.
    package mutating func isOne(in count: Int) -> Bool {
        Int.random(in: 0..<count, using: &self) == 0
    }

    package mutating func number(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &self)
    }

    /// Draws from a range so that small numbers are as likely as large ones.
    package mutating func scale(_ range: ClosedRange<Int>) -> Int {
        let bits = number(0...(Int.bitWidth - range.upperBound.leadingZeroBitCount))
        return min(range.upperBound, max(range.lowerBound, number(0...(1 << bits))))
    }

    package mutating func one<Element>(of elements: [Element]) -> Element {
        elements[number(0...(elements.count - 1))]
    }
}
