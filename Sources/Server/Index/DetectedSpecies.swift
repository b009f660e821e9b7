// How often and how surely a species was recognised.

/// The detections of a species.
package struct DetectedSpecies: Sendable {
    package var records: Int64
    /// The highest confidence, and the time of the first detection that had it.
    package var best: Double
    package var at: Int64
    /// Milliseconds since 1970.
    package var first: Int64
    package var last: Int64

    init(_ records: Int64, best: Double, at: Int64, first: Int64, last: Int64) {
        (self.records, self.best, self.at) = (records, best, at)
        (self.first, self.last) = (first, last)
    }

    func adding(_ other: Self) -> Self {
        let isBetter = (-other.best, other.at) < (-best, at)
        return Self(
            records + other.records,
            best: max(best, other.best),
            at: isBetter ? other.at : at,
            first: min(first, other.first),
            last: max(last, other.last)
        )
    }
}
