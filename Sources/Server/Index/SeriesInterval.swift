// The values of a quantity in an interval, added up.
import Glibc

/// The values of a quantity in an interval.
package struct SeriesInterval {
    package var records: Int64
    package var total: Double
    package var low: Double
    package var high: Double

    package init(
        records: Int64 = 0,
        total: Double = 0,
        low: Double = .infinity,
        high: Double = -.infinity
    ) {
        (self.records, self.total, self.low, self.high) = (records, total, low, high)
    }

    package var mean: Double { (total / Double(records)).rounded(digits: 9) }

    package mutating func add(_ records: Int64, _ total: Double, _ low: Double, _ high: Double) {
        self.records += records
        self.total += total
        self.low = min(self.low, low)
        self.high = max(self.high, high)
    }
}

extension Double {
    /// Rounds to so many significant digits.
    func rounded(digits: Int) -> Double {
        guard self != 0, isFinite else { return self }
        let scale = pow(10, Double(digits) - ceil(log10(abs(self))))
        let rounded = (self * scale).rounded() / scale
        return rounded.isFinite ? rounded : self
    }
}
