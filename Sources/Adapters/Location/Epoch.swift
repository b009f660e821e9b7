// Partial reports to one fix an epoch.
import Host
import Records

/// All that the reports of one epoch said.
struct MergedReport {
    var position: GPSReport.Position
    /// When the first of them came.
    var stamp: Stamp

    /// nil without a mode or a place.
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

/// Puts the reports of one epoch together (several TPVs with one time are normal).
struct EpochMerger {
    /// An epoch whose end no other report marks is over after this.
    static let patience = Duration.milliseconds(1500)
    /// Fixes that have come without a time for so long are kept without one: the receiver, or gpsd, knows none any more.
    static let timeless = Duration.seconds(10)

    private var open: MergedReport?
    /// Since when fixes have come without a time; before long such a report belongs to an epoch and begins none.
    private var timelessSince: BootInstant?

    /// When the open epoch is over; nil when none is open.
    var deadline: BootInstant? { open.map { $0.stamp.boot + Self.patience } }

    /// Takes a report; returns the epoch that it ends.
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

    /// Ends the open epoch if it is over.
    mutating func flush(now: BootInstant) -> MergedReport? {
        guard let deadline, now >= deadline else { return nil }
        return finish()
    }

    /// Ends the open epoch: nothing more will come of it.
    mutating func finish() -> MergedReport? {
        defer { open = nil }
        return open
    }
}

extension MergedReport {
    /// Whether a report is of this epoch; where there is no time, each place is of its own moment.
    fileprivate func isJoined(by report: GPSReport.Position) -> Bool {
        guard report.time == nil else { return report.time == position.time }
        return position.time != nil || !position.hasPlace || !report.hasPlace
    }
}
