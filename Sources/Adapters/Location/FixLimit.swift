// Which of the good fixes are kept.
import Host
import Records

/// At most one fix an interval, and only after so many metres.
struct FixLimit {
    private let interval: Duration
    private let minDistance: Double
    private var last: Fix?

    init(interval: Duration, minDistance: Double) {
        self.interval = interval
        self.minDistance = minDistance
    }

    mutating func admits(_ fix: Fix) -> Bool {
        if let last {
            // A receiver's epochs come a little early or late: a tenth of a second is no reason to wait for the next.
            guard fix.stamp.boot - last.stamp.boot >= interval - .milliseconds(100) else {
                return false
            }
            guard minDistance <= 0 || Self.metres(last, fix) >= minDistance else { return false }
        }
        last = fix
        return true
    }

    static func metres(_ from: Fix, _ to: Fix) -> Double {
        Place(latitude: from.latitude, longitude: from.longitude)
            .metres(to: Place(latitude: to.latitude, longitude: to.longitude))
    }
}
