// Which of the good fixes are kept.
internal import Glibc
internal import Host
internal import Store

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

    /// The haversine distance on a sphere of 6,371,009 m.
    static func metres(_ from: Fix, _ to: Fix) -> Double {
        let radians = Double.pi / 180
        let latitude = sin((to.latitude - from.latitude) * radians / 2)
        let longitude = sin((to.longitude - from.longitude) * radians / 2)
        let chord =
            latitude * latitude + cos(from.latitude * radians) * cos(to.latitude * radians)
            * longitude * longitude
        return 2 * 6_371_009 * asin(min(1, chord.squareRoot()))
    }
}
