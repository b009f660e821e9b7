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
            try file.forEachLine(from: start, to: end) { if let line = $0 { take(line) } }
        }
    }

    private mutating func take(_ line: RecordLine) {
        guard let time = line.time("timestamp"), time >= day.start, time < day.end else { return }
        let slot = Int((time - day.start) / IndexedPart.slot)
        guard let beacon = line.text("beacon_id") ?? line.text("address"),
            let rssi = line["rssi"].flatMap({ Self.number($0, of: line) })
        else {
            if !Self.add(line, at: time, in: slot, to: &series, most: Self.mostSeries) {
                isCut = true
            }
            return
        }
        if beacons[beacon] == nil, beacons.count >= Self.mostBeacons {
            isCut = true
            return
        }
        var known = beacons[beacon] ?? DayBeacon()
        // Removed during the change: a second reference would copy it with each sighting.
        beacons[beacon] = DayBeacon()
        known.kind = line.text("kind") ?? ""
        known.sightings += 1
        known.strength.add(rssi, at: time, in: slot)
        if let telemetry = line["telemetry"].flatMap(line.object),
            !Self.add(
                telemetry,
                without: [],
                at: time,
                in: slot,
                to: &known.readings,
                most: Self.mostBeaconSeries
            )
        {
            isCut = true
        }
        beacons[beacon] = known
    }

    /// Adds the numbers of an object; returns false if there are too many series.
    ///
    /// A position is not one of them: it is drawn on the map.
    private static func add(
        _ line: RecordLine,
        without others: Set<String> = ["rssi", "latitude", "longitude"],
        at time: Int64,
        in slot: Int,
        to series: inout [String: DaySeries],
        most: Int
    ) -> Bool {
        var isWhole = true
        for member in line.members {
            let name = member.name ?? ""
            guard !others.contains(name), let value = number(member.value, of: line) else {
                continue
            }
            if series[name] == nil, series.count >= most {
                isWhole = false
            } else {
                series[name, default: DaySeries()].add(value, at: time, in: slot)
            }
        }
        return isWhole
    }

    private static func number(_ range: Range<Int>, of line: RecordLine) -> Double? {
        line.value(range).number.flatMap { abs($0) < 1e15 ? $0 : nil }
    }
}
