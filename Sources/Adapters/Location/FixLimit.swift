// Limits how often good fixes are stored.
import Host
import Records

/// Admits at most one fix per interval, and only after a minimum distance.
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
            // Epochs arrive slightly early or late; 100 ms early still counts as a full interval.
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
