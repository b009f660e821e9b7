// Partial reports to one fix an epoch, and which fixes are kept.
internal import Glibc
internal import Host
internal import Store

/// Puts the reports of one epoch together (several TPVs with one time are normal).
struct EpochMerger {
    /// An epoch whose end no other report marks is over after this.
    static let patience = Duration.milliseconds(1500)
    /// 2025-01-01: earlier times come from receivers without one, or after a week rollover.
    static let earliest = WallTime(milliseconds: 1_735_689_600_000)

    private var open: (position: GPSReport.Position, stamp: Stamp)?

    /// The receiver gives times: a report without one belongs to an epoch and never begins one.
    private var givesTimes = false

    /// When the open epoch is over; nil when none is open.
    var deadline: BootInstant? { open.map { $0.stamp.boot + Self.patience } }

    /// Takes a report; returns the epoch that it ends.
    mutating func add(_ position: GPSReport.Position, at stamp: Stamp) -> Fix? {
        if var current = open, current.position.time == position.time || position.time == nil {
            current.position.merge(position)
            open = current
            return nil
        }
        if position.time != nil { givesTimes = true }
        defer { open = position.time == nil && givesTimes ? nil : (position, stamp) }
        return finish()
    }

    /// Ends the open epoch if it is over.
    mutating func flush(now: BootInstant) -> Fix? {
        guard let deadline, now >= deadline else { return nil }
        return finish()
    }

    private mutating func finish() -> Fix? {
        guard let (position, stamp) = open else { return nil }
        open = nil
        guard let mode = Fix.Mode(rawValue: position.mode), let latitude = position.latitude,
            let longitude = position.longitude, position.time.map({ $0 >= Self.earliest }) ?? true
        else { return nil }
        var fix = Fix(stamp: stamp, mode: mode, latitude: latitude, longitude: longitude)
        fix.receiverTime = position.time
        fix.altitude = position.altitude
        fix.speed = position.speed
        fix.course = position.course
        fix.horizontalAccuracy = position.horizontalAccuracy
        fix.verticalAccuracy = position.verticalAccuracy
        return fix
    }
}

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
