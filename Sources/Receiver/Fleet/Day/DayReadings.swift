// The numbers measured in a stream's day, and the beacons heard.
import Host

/// The range of a number over a day, in slots of ten minutes.
struct DaySeries {
    struct Slot {
        var low: Double
        var high: Double
    }

    private(set) var slots: [Int: Slot] = [:]
    private(set) var range: ClosedRange<Double>?
    private(set) var last: (time: Int64, value: Double)?

    mutating func add(_ value: Double, at time: Int64, in slot: Int) {
        let known = slots[slot] ?? Slot(low: value, high: value)
        slots[slot] = Slot(low: min(known.low, value), high: max(known.high, value))
        let all = range ?? value...value
        range = min(all.lowerBound, value)...max(all.upperBound, value)
        if last.map({ $0.time <= time }) ?? true { last = (time, value) }
    }
}

/// A beacon's sightings over a day.
struct DayBeacon {
    var kind = ""
    var sightings = 0
    var strength = DaySeries()
    var readings: [String: DaySeries] = [:]
}

struct DayReadings {
    /// Bytes of a file that are read; of a larger one, parts spread evenly over it.
    private static let budget = 24 << 20
    private static let part = 256 << 10
    /// The maximum numbers of series, beacons and series per beacon: some 16 MB at most.
    private static let mostSeries = 40
    private static let mostBeacons = 200
    private static let mostBeaconSeries = 12

    private let day: Day
    private(set) var records = 0
    private(set) var series: [String: DaySeries] = [:]
    private(set) var beacons: [String: DayBeacon] = [:]
    /// True if only parts of the file were read.
    private(set) var isSample = false
    /// True if series or beacons were left out.
    private(set) var isCut = false

    /// Reads one stream's file of a day; empty if it does not exist.
    init(_ path: String, _ day: Day) throws {
        self.day = day
        guard let file = try LineFile.open(path) else { return }
        let size = try file.size()
        isSample = size > Int64(Self.budget)
        let parts = isSample ? Int64(Self.budget / Self.part) : 1
        for part in 0..<parts {
            // A part may begin inside a line; the rest of that line does not parse and is skipped.
            let start = size / parts * part
            let end = isSample ? min(size, start + Int64(Self.part)) : size
            _ = try file.forEachLine(from: start, to: end, budget: .max) { line in
                if let line, let numbers = NumberLine(line) { take(numbers) }
            }
        }
    }

    private mutating func take(_ line: NumberLine) {
        guard line.time >= day.start, line.time < day.end else { return }
        records += 1
        let slot = Int((line.time - day.start) / IndexedPart.slot)
        guard let beacon = line.beacon, let rssi = line.rssi else {
            if !Self.add(line, in: slot, to: &series, most: Self.mostSeries) { isCut = true }
            return
        }
        if beacons[beacon] == nil, beacons.count >= Self.mostBeacons {
            isCut = true
            return
        }
        var known = beacons[beacon] ?? DayBeacon()
        // Removed during the change: a second reference would copy it with each sighting.
        beacons[beacon] = DayBeacon()
        known.kind = line.kind
        known.sightings += 1
        known.strength.add(rssi, at: line.time, in: slot)
        if !Self.add(line, in: slot, to: &known.readings, most: Self.mostBeaconSeries) {
            isCut = true
        }
        beacons[beacon] = known
    }

    /// Adds a line's numbers; returns false if there are too many series.
    private static func add(
        _ line: NumberLine,
        in slot: Int,
        to series: inout [String: DaySeries],
        most: Int
    ) -> Bool {
        var isWhole = true
        for (name, value) in line.numbers {
            if series[name] == nil, series.count >= most {
                isWhole = false
            } else {
                series[name, default: DaySeries()].add(value, at: line.time, in: slot)
            }
        }
        return isWhole
    }
}

/// The numbers of a record; for a beacon's record those of `telemetry`.
private struct NumberLine {
    private(set) var time: Int64 = 0
    private(set) var kind = ""
    /// The beacon's id, or else its address.
    private(set) var beacon: String?
    private(set) var rssi: Double?
    private(set) var numbers: [(name: String, value: Double)] = []
    private var timestamp: String?
    private var address: String?
    private var telemetry: [(name: String, value: Double)] = []

    /// Nil if the line is not a record.
    init?(_ line: ByteView) {
        var text = BodyJSON(line)
        do {
            try text.object { try take(&$0, $1) }
            try text.end()
        } catch {
            return nil
        }
        guard let time = timestamp.flatMap({ WallTime(rfc3339: $0) }) else { return nil }
        self.time = time.milliseconds
        beacon = beacon ?? address
        if rssi != nil, beacon != nil { numbers = telemetry }
    }

    private mutating func take(_ text: inout BodyJSON, _ name: Range<Int>) throws {
        let first = text.next()
        let name = JSONString.read(text.bytes, name) ?? ""
        if first == UInt8(ascii: "{"), name == "telemetry" {
            try text.object { text, name in
                let inner = JSONString.read(text.bytes, name) ?? ""
                if let number = try Self.number(&text) { telemetry.append((inner, number)) }
            }
        } else if first == UInt8(ascii: "\"") {
            takeText(JSONString.read(text.bytes, try text.value()), name)
        } else if let number = try Self.number(&text) {
            switch name {
            case "rssi": rssi = number
            // A position is drawn on the map.
            case "latitude", "longitude": break
            default: numbers.append((name, number))
            }
        }
    }

    private mutating func takeText(_ value: String?, _ name: String) {
        switch name {
        case "timestamp": timestamp = value
        case "kind": kind = value ?? ""
        case "beacon_id": beacon = value
        case "address": address = value
        default: break
        }
    }

    /// Passes a value; returns nil if it is not a usable number.
    private static func number(_ text: inout BodyJSON) throws -> Double? {
        let value = try text.value()
        guard value.count <= 40 else { return nil }
        let number = Double(String(decoding: text.bytes[value], as: UTF8.self))
        return number.flatMap { $0.isFinite && abs($0) < 1e15 ? $0 : nil }
    }
}
