// The values of a quantity in an interval, added up.

/// The values of a quantity in an interval.
struct SeriesInterval {
    var records: Int64 = 0
    var total = 0.0
    var low = Double.infinity
    var high = -Double.infinity

    var mean: Double { (total / Double(records)).rounded(digits: 9) }

    mutating func add(_ records: Int64, _ total: Double, _ low: Double, _ high: Double) {
        self.records += records
        self.total += total
        self.low = min(self.low, low)
        self.high = max(self.high, high)
    }
}
