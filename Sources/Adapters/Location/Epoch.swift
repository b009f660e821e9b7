// Merges gpsd's partial reports into one fix per epoch.
import Host
import Records

/// The merged contents of all reports of one epoch.
struct MergedReport {
    var position: GPSReport.Position
    /// When the first report arrived; if the epoch has no time, when the newest position arrived.
    var stamp: Stamp

    /// The fix; nil without a mode or a position.
    var fix: Fix? {
        guard let mode = Fix.Mode(rawValue: position.mode), let latitude = position.latitude,
            let longitude = position.longitude
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

/// Merges the reports of one epoch (gpsd normally sends several TPVs with the same time).
struct EpochMerger {
    /// Timeout after which an epoch ends if no report of the next one has ended it.
    static let patience = Duration.milliseconds(1500)
    /// Fixes are stored without a time after this long without one: the GNSS receiver or gpsd has
    /// lost it.
    static let timeless = Duration.seconds(10)

    private var open: MergedReport?
    /// Since when fixes have had no time.
    ///
    /// Until `timeless` has passed, such a report joins an open epoch but never begins one.
    private var timelessSince: BootInstant?

    /// When the open epoch times out; nil when none is open.
    var deadline: BootInstant? { open.map { $0.stamp.boot + Self.patience } }

    /// Adds a report; returns the epoch that it ends.
    mutating func add(_ position: GPSReport.Position, at stamp: Stamp) -> MergedReport? {
        if var current = open, current.isJoined(by: position) {
            if position.time == nil, current.position.time == nil, position.hasPlace {
                current.stamp = stamp
            }
            current.position.merge(position)
            open = current
            return nil
        }
        if position.time != nil {
            timelessSince = nil
        } else if position.mode > 1 {
            timelessSince = timelessSince ?? stamp.boot
        }
        let isTimeless = timelessSince.map { stamp.boot - $0 >= Self.timeless } ?? false
        let isKnown = position.time != nil || isTimeless
        defer { open = isKnown ? MergedReport(position: position, stamp: stamp) : nil }
        return finish()
    }

    /// Ends the open epoch if it has timed out.
    mutating func flush(now: BootInstant) -> MergedReport? {
        guard let deadline, now >= deadline else { return nil }
        return finish()
    }

    /// Ends the open epoch because no more reports of it will arrive.
    mutating func finish() -> MergedReport? {
        defer { open = nil }
        return open
    }
}

extension MergedReport {
    /// Returns whether a report belongs to this epoch.
    ///
    /// Without times, each position is an epoch of its own.
    fileprivate func isJoined(by report: GPSReport.Position) -> Bool {
        guard report.time == nil else { return report.time == position.time }
        return position.time != nil || !position.hasPlace || !report.hasPlace
    }
}
