// The resources of the read API: addresses, parameters, columns. Requests are checked against this
// list, and openapi.json is made from it.
import ServerWeb

/// A parameter of a query.
package enum APIParameter: String {
    case from, to, stream, beacon, key, kind, source, state, points, limit, cursor, format

    static let maxRows: Int64 = 10_000
    static let usualRows: Int64 = 1000
    static let maxPoints: Int64 = 2000
    static let usualPoints: Int64 = 500

    var words: StaticString {
        switch self {
        case .from: "The earliest time, RFC 3339, or a day (UTC): 2026-11-21."
        case .to: "The time before which it ends, RFC 3339, or a day (UTC), which is left out."
        case .stream: "Only this stream."
        case .beacon: "Only this beacon_id; of a beacon without one, its address."
        case .key: "Only this number: temperature_c, rssi."
        case .kind: "Only events of this kind: gap, source_lost."
        case .source: "Only events of this source."
        case .state: "Only devices in this state."
        case .points: "The most points of one series."
        case .limit: "The most rows of a page. A page may have fewer while it has a next."
        case .cursor: "The next of the page before, with all else as in that request."
        case .format: "json or csv; without it as Accept asks, JSON if it does not."
        }
    }
}

/// A column of a table: a member of its JSON, a column of its CSV.
struct APIColumn {
    enum Kind { case text, number, integer, time, list, object }

    let name: String
    let kind: Kind
    let words: StaticString

    init(_ name: String, _ kind: Kind, _ words: StaticString) {
        (self.name, self.kind, self.words) = (name, kind, words)
    }
}

extension APIResource {
    package var path: String {
        switch self {
        case .devices: "\(Route.readAPI)devices"
        case .device: "\(Route.readAPI)devices/{device}"
        default: "\(Route.readAPI)devices/{device}/\(rawValue)"
        }
    }

    var words: StaticString {
        switch self {
        case .devices: "The devices in order of their ids, with their state."
        case .device: "One device and its streams."
        case .days: "The days (UTC) with records of a device, oldest first."
        case .readings:
            "Numbers as measured: telemetry and signal strength of beacons, numbers of streams. By day and stream, then in the order of arrival."
        case .positions: "Fixes. By day and stream, then in the order of arrival."
        case .audio: "Audio chunks. By day and stream, then in the order of arrival."
        case .events: "Events in order of time: gaps, losses, lost and recovered sources."
        case .series:
            "Minimum, mean and maximum of each quantity in intervals of equal length, for plots: of the last day, or at most 366 days. An interval divides hours or days; it has ten minutes or more, and is shorter only if the records of that time are few enough to be read (source: records)."
        }
    }

    var parameters: [APIParameter] {
        switch self {
        case .devices: [.state, .limit, .cursor, .format]
        case .device: [.format]
        case .days: [.from, .to, .limit, .cursor, .format]
        case .readings: [.from, .to, .stream, .beacon, .key, .limit, .cursor, .format]
        case .positions, .audio: [.from, .to, .stream, .limit, .cursor, .format]
        case .events: [.from, .to, .kind, .source, .limit, .cursor, .format]
        case .series: [.from, .to, .stream, .beacon, .key, .points, .format]
        }
    }

    /// True if its JSON has an array for each column, false if an object for each row.
    var isColumnar: Bool { self == .readings || self == .positions }

    var columns: [APIColumn] {
        switch self {
        case .devices, .device: Self.deviceColumns
        case .days: Self.dayColumns
        case .readings: Self.readingColumns
        case .positions: Self.positionColumns
        case .audio: Self.audioColumns
        case .events: Self.eventColumns
        case .series: Self.seriesColumns
        }
    }

    private static let deviceColumns = [
        APIColumn("device", .text, "Its id."),
        APIColumn("state", .text, "healthy, degraded, critical, late or revoked."),
        APIColumn("reasons", .list, "Why, worst first."),
        APIColumn("version", .text, "Of its Waypost, as last reported."),
        APIColumn("first_seen", .time, "Its first contact."),
        APIColumn("last_seen", .time, "Its last contact."),
        APIColumn("latitude", .number, "Degrees; of its last position."),
        APIColumn("longitude", .number, "Degrees; of its last position."),
        APIColumn("position_at", .time, "When it was there."),
        APIColumn("lost_24h", .integer, "Records that its events of the last day report as lost."),
        APIColumn("records", .integer, "Records that are stored."),
    ]

    private static let dayColumns = [
        APIColumn("date", .text, "yyyy-mm-dd, UTC."),
        APIColumn("records", .integer, "Records of that day."),
        APIColumn("first", .time, "Its first record."),
        APIColumn("last", .time, "Its last record."),
        APIColumn("streams", .list, "The streams with records."),
    ]

    private static let readingColumns = [
        APIColumn("time", .time, "When it was measured."),
        APIColumn("stream", .text, "Its stream."),
        APIColumn("beacon", .text, "The beacon; absent for a number of the stream itself."),
        APIColumn("key", .text, "The quantity, with its unit at the end; rssi is in dBm."),
        APIColumn("value", .number, "The number."),
    ]

    private static let positionColumns = [
        APIColumn("time", .time, "When it was there."),
        APIColumn("stream", .text, "Its stream."),
        APIColumn("latitude", .number, "Degrees."),
        APIColumn("longitude", .number, "Degrees."),
        APIColumn("altitude", .number, "Metres above mean sea level."),
        APIColumn("speed", .number, "Metres per second."),
        APIColumn("course", .number, "Degrees from north."),
        APIColumn("horizontal_accuracy", .number, "Metres."),
        APIColumn("fix", .text, "2d or 3d."),
    ]

    private static let audioColumns = [
        APIColumn("start", .time, "Its first sample."),
        APIColumn("end", .time, "Its last sample."),
        APIColumn("stream", .text, "Its stream."),
        APIColumn("file", .text, "The file's name."),
        APIColumn("level_db", .number, "Its mean level in dBFS."),
        APIColumn("path", .text, "Where this server has the file."),
    ]

    private static let eventColumns = [
        APIColumn("time", .time, "When it happened."),
        APIColumn("id", .text, "The record's id."),
        APIColumn("kind", .text, "Such as gap or source_lost."),
        APIColumn("source", .text, "The part of the gateway."),
        APIColumn("detail", .object, "More of it; absent if it is too long for the index."),
    ]

    private static let seriesColumns = [
        APIColumn("time", .time, "The interval's beginning."),
        APIColumn("stream", .text, "Its stream."),
        APIColumn("beacon", .text, "The beacon; absent for a number of the stream itself."),
        APIColumn("key", .text, "The quantity."),
        APIColumn("records", .integer, "The number of values in the interval."),
        APIColumn("min", .number, "The smallest."),
        APIColumn("mean", .number, "The mean, to nine digits."),
        APIColumn("max", .number, "The largest."),
    ]
}
