// The time that a page shows: days in a time zone.
import ServerBase
import ServerIndex

/// Days in a time zone, and when they begin and end.
struct LocalSpan {
    let days: DaySpan
    let zone: TimeZoneRules
    /// Milliseconds since 1970.
    let time: Range<Int64>

    /// Nil for a date that the zone has skipped (Samoa, 30 December 2011).
    init?(_ days: DaySpan, _ zone: TimeZoneRules) {
        let (start, end) = (zone.time(days.first), zone.time(days.last, hours: 24))
        guard start < end else { return nil }
        (self.days, self.zone, time) = (days, zone, start..<end)
    }

    var length: Int64 { time.upperBound - time.lowerBound }

    /// The slots of the index in a cell of the timeline: one up to three days, at most 450 cells beyond.
    var step: Int64 {
        let cells = { (step: Int64) in length / (step * IndexedPart.slot) }
        return [1, 6, 12, 36, 144].first { cells($0) <= 450 } ?? 144
    }

    /// The query of this page's links.
    var query: String { "zone=\(FormField.written(zone.name))" }

    /// Returns the address of a page of days in this zone.
    func address(_ device: String, _ days: DaySpan) -> String {
        "/device/\(device)/\(days.name)?\(query)"
    }

    /// Names the zone, and its offset at both ends: `Europe/Berlin, UTC+02:00, then UTC+01:00`.
    var zoneText: String {
        guard zone.title.hasPrefix("UTC") == false else { return zone.title }
        let (first, last) = (zone.offset(at: time.lowerBound), zone.offset(at: time.upperBound - 1))
        return "\(zone.title), \(first)" + (first == last ? "" : ", then \(last)")
    }
}
