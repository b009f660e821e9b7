// Converts a line of an archive's file to a point of InfluxDB.
import Host
import ServerBase

/// The members of a record that can be fields, in order; of equal names the last counts.
///
/// Nested objects are flattened one level: `{"soil": {"depth_m": 1}}` is `soil_depth_m`. Members of
/// `telemetry` keep their names.
struct InfluxRecord {
    private static let maxFields = 255
    /// Bytes.
    private static let longestName = 128
    private static let longestNumber = 64
    /// Members that are not fields, unless they are objects.
    private static let others = ["id", "timestamp", "timestamp_start", "audio_file"]
    /// The members that are integers in sightings and fixes.
    ///
    /// All other numbers are floats: InfluxDB keeps a field's first type and refuses others, and
    /// JSON does not distinguish 21 °C from 21.0 °C.
    private static let integers: Set<String> = [
        "rssi", "tx_power", "satellites", "sequence", "movement_counter",
    ]

    private let line: RecordLine
    private var isAudio = false
    private var hasTelemetry = false
    private var fields: [(name: String, value: RecordLine.Value)] = []
    private var places: [String: Int] = [:]
    /// The number of members that cannot be fields.
    private(set) var leftOut = 0

    init(_ line: RecordLine) {
        self.line = line
        for member in line.members {
            if let inner = line.object(member.value) {
                for part in inner.members { receive(part, of: member.name) }
            } else if let name = member.name {
                // The archive writes `audio_file` instead of audio data.
                if name == "audio_file" { isAudio = true }
                if !Self.others.contains(name) { put(name, member.value) }
            } else {
                leftOut += 1
            }
        }
    }

    // MARK: Reading

    private mutating func receive(_ part: RecordLine.Member, of outer: String?) {
        guard let outer, let name = part.name else { return leftOut += 1 }
        guard outer == "telemetry" else { return put("\(outer)_\(name)", part.value) }
        hasTelemetry = true
        put(name, part.value)
    }

    private mutating func put(_ name: String, _ range: Range<Int>) {
        // Null means that there is no value.
        guard !line.begins(range, "n") else { return }
        let value = line.value(range)
        guard Self.isKey(name), Self.isField(value) else { return leftOut += 1 }
        if let place = places[name] {
            fields[place].value = value
        } else if fields.count < Self.maxFields {
            places[name] = fields.count
            fields.append((name, value))
        } else {
            leftOut += 1
        }
    }

    /// Returns whether a name can be a field: InfluxDB reserves `_…`, and loses `time` and the names
    /// of tags.
    private static func isKey(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= longestName && !name.hasPrefix("_")
            && !["time", "device_id"].contains(name)
    }

    /// Returns false for arrays, deeper objects, and long values.
    private static func isField(_ value: RecordLine.Value) -> Bool {
        switch value {
        case .number(let number): number.utf8.count <= longestNumber
        case .text, .flag: true
        case .other: false
        }
    }

    // MARK: Writing

    /// Returns the point without a line end; nil for audio and for sightings without readings.
    ///
    /// `number`: the line's number in its file.
    mutating func point(stream: String, device: String, number: Int64) -> String? {
        let isSighting = isNumber("rssi") && text("beacon_id") != nil
        guard !isAudio, hasTelemetry || !isSighting else { return nil }
        guard let time = line.writtenTime.flatMap(WallTime.init(rfc3339:)),
            let nanoseconds = Self.nanoseconds(time, Self.row(of: line.text("id") ?? "") ?? number)
        else {
            leftOut += 1
            return nil
        }
        var tags: [(name: String, value: String)] = [("device_id", device)]
        if isSighting {
            tags.insert(("beacon_id", text("beacon_id") ?? ""), at: 0)
            tags.append(("kind", text("kind") ?? ""))
        }
        let names = Set(tags.map(\.name))
        let hasIntegers = isSighting || isNumber("latitude") && isNumber("longitude")
        let members = fields.filter { !names.contains($0.name) }.compactMap {
            member($0.name, $0.value, hasIntegers: hasIntegers)
        }
        guard !members.isEmpty else { return nil }
        let key = tags.filter { !$0.value.isEmpty }.map {
            ",\($0.name)=\(LineProtocol.name($0.value))"
        }
        return
            "\(LineProtocol.measurement(stream))\(key.joined()) \(members.joined(separator: ",")) \(nanoseconds)"
    }

    private mutating func member(_ name: String, _ value: RecordLine.Value, hasIntegers: Bool)
        -> String?
    {
        let written: String?
        switch value {
        case .text(let text): written = LineProtocol.string(text)
        case .flag(let flag): written = flag ? "true" : "false"
        case .number(let number):
            let isInteger = hasIntegers && Self.integers.contains(name)
            written = isInteger ? LineProtocol.integer(number) : LineProtocol.float(number)
        case .other: written = nil
        }
        guard let written else {
            leftOut += 1
            return nil
        }
        return "\(LineProtocol.name(name))=\(written)"
    }

    private func text(_ name: String) -> String? {
        guard let place = places[name], case .text(let text) = fields[place].value else {
            return nil
        }
        return text
    }

    private func isNumber(_ name: String) -> Bool {
        guard let place = places[name], case .number = fields[place].value else { return false }
        return true
    }

    // MARK: Timestamps

    /// Returns a timestamp unique to the record: its milliseconds, plus its row number below them.
    ///
    /// Two records of one stream, device and millisecond only collide if a million rows apart. Nil
    /// if it exceeds 64 bits.
    private static func nanoseconds(_ time: WallTime, _ row: Int64) -> Int64? {
        let (start, isTooFar) = time.milliseconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, isAbove) = start.addingReportingOverflow(row % 1_000_000)
        return isTooFar || isAbove || sum < -Int64.max + 1 || sum == .max ? nil : sum
    }

    /// Returns the row in the gateway's queue: the last 40 bits of a version 8 UUID; nil for other
    /// ids.
    private static func row(of id: String) -> Int64? {
        let bytes = Array(id.utf8)
        guard bytes.count == 36, bytes[14] == UInt8(ascii: "8"),
            [8, 13, 18, 23].allSatisfy({ bytes[$0] == UInt8(ascii: "-") })
        else { return nil }
        return Int64(id.suffix(10), radix: 16)
    }
}
