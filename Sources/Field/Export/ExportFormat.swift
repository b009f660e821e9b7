// The formats of an export, with one writer type per text format.
import Host

/// The format of an export.
package enum ExportFormat: String, Sendable, CaseIterable {
    /// One JSON object per line, as on the wire.
    case ndjson
    /// RFC 4180 with a header line; a column for each member of an object, JSON for a list.
    case csv
    /// A GPX 1.1 track (topografix.com/GPX/1/1).
    case gpx
    /// GeoJSON points with properties (RFC 7946).
    case geojson
    /// Playable files, one per chunk.
    case wav
    case ogg
    case flac
    /// Each as it was recorded.
    case recorded
}

/// Converts records to text; used for one export.
protocol ExportWriter {
    /// Returns the text before the first record.
    mutating func begin() -> String
    mutating func record(_ json: [UInt8]) -> [UInt8]
    /// Returns the text after the last record.
    mutating func end() -> String
}

struct LinesWriter: ExportWriter {
    func begin() -> String { "" }
    func record(_ json: [UInt8]) -> [UInt8] { json + [10] }
    func end() -> String { "" }
}

/// Writes CSV (RFC 4180).
struct TableWriter: ExportWriter {
    /// The member names in the order of their first appearance.
    let columns: [String]
    let times: ExportTimes

    func begin() -> String { columns.map(csvCell).joined(separator: ",") + "\r\n" }

    func record(_ json: [UInt8]) -> [UInt8] {
        let values = Dictionary(
            RecordMembers(json).flat.map {
                ($0.name, times.cell($0.name, RecordMembers.text($0.value)))
            },
            uniquingKeysWith: { first, _ in first }
        )
        let cells = columns.map { csvCell(values[$0] ?? "") }
        return Array((cells.joined(separator: ",") + "\r\n").utf8)
    }

    func end() -> String { "" }
}

/// Writes a GPX track, with a new segment after each longer gap.
struct TrackWriter: ExportWriter {
    /// The gap in ms after which the path between two fixes is unknown.
    private static let gap: Int64 = 300_000

    let name: String
    private var last: Int64?

    init(name: String) { self.name = name }

    func begin() -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <gpx version="1.1" creator="waypost" xmlns="http://www.topografix.com/GPX/1/1" \
        xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2">
        <trk><name>\(Self.escaped(name))</name>

        """
    }

    mutating func record(_ json: [UInt8]) -> [UInt8] {
        let members = RecordMembers(json)
        guard let latitude = members["latitude"], let longitude = members["longitude"],
            let time = members.text("timestamp")
        else { return [] }
        var text = segment(at: time)
        text += "<trkpt lat=\"\(latitude)\" lon=\"\(longitude)\">"
        // In the order that the schema requires.
        if let altitude = members["altitude"] { text += "<ele>\(altitude)</ele>" }
        text += "<time>\(Self.escaped(time))</time>"
        if let fix = members.text("fix") { text += "<fix>\(Self.escaped(fix))</fix>" }
        if let satellites = members["satellites"] { text += "<sat>\(satellites)</sat>" }
        let motion = ["speed", "course"].compactMap { name in
            members[name].map { "<gpxtpx:\(name)>\($0)</gpxtpx:\(name)>" }
        }
        if !motion.isEmpty {
            text += "<extensions><gpxtpx:TrackPointExtension>\(motion.joined())"
            text += "</gpxtpx:TrackPointExtension></extensions>"
        }
        return Array((text + "</trkpt>\n").utf8)
    }

    private mutating func segment(at time: String) -> String {
        let now = WallTime(rfc3339: time)?.milliseconds
        defer { last = now ?? last }
        guard let last else { return "<trkseg>\n" }
        let isBroken = now.map { abs($0 - last) > Self.gap } ?? false
        return isBroken ? "</trkseg>\n<trkseg>\n" : ""
    }

    func end() -> String { (last == nil ? "" : "</trkseg>\n") + "</trk>\n</gpx>\n" }

    private static func escaped(_ text: String) -> String {
        let text = text.replacing(text: "&", with: "&amp;")
        return text.replacing(text: "<", with: "&lt;").replacing(text: ">", with: "&gt;")
    }
}

/// Writes a GeoJSON collection with a point per fix.
struct PointsWriter: ExportWriter {
    private var isFirst = true

    func begin() -> String { "{\"type\":\"FeatureCollection\",\"features\":[" }

    mutating func record(_ json: [UInt8]) -> [UInt8] {
        let members = RecordMembers(json)
        guard let latitude = members["latitude"], let longitude = members["longitude"] else {
            return []
        }
        let height = members["altitude"].map { ",\($0)" } ?? ""
        var text = isFirst ? "\n" : ",\n"
        isFirst = false
        text += "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":"
        text += "[\(longitude),\(latitude)\(height)]},\"properties\":{"
        text += members.all.filter { !["latitude", "longitude", "altitude"].contains($0.name) }
            .map { "\"\($0.name)\":\(String(decoding: $0.value, as: UTF8.self))" }
            .joined(separator: ",")
        return Array((text + "}}").utf8)
    }

    func end() -> String { "\n]}\n" }
}
