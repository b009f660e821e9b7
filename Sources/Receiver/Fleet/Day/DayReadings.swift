// The numbers measured in a stream's day, and the beacons heard, from the index.
import SQLite

/// The range and the mean of a number over a day.
struct DaySeries {
    /// Ten minutes of the index.
    fileprivate struct Slot {
        var low: Double
        var high: Double
        var total: Double
        var records: Int64
    }

    private var total = 0.0
    private var records: Int64 = 0
    private(set) var range: ClosedRange<Double>?
    /// The latest value, and its time in milliseconds since 1970.
    let last: (time: Int64, value: Double)

    init(last: (time: Int64, value: Double)) { self.last = last }

    var mean: Double { records > 0 ? total / Double(records) : 0 }

    fileprivate mutating func add(_ slot: Slot) {
        let (low, high) = (range?.lowerBound ?? slot.low, range?.upperBound ?? slot.high)
        range = min(low, slot.low)...max(high, slot.high)
        total += slot.total
        records += slot.records
    }
}

/// A beacon's sightings over a day.
struct DayBeacon {
    var kind = ""
    var sightings = 0
    var strength: DaySeries?
    var readings: [String: DaySeries] = [:]
}

struct DayReadings {
    fileprivate(set) var series: [String: DaySeries] = [:]
    fileprivate(set) var beacons: [String: DayBeacon] = [:]
    /// True if series or beacons were left out.
    fileprivate(set) var isCut = false
}

extension FleetReader {
    /// Returns the readings of a stream's day; empty if there are none.
    func readings(of device: String, _ stream: String, on day: Day) throws -> DayReadings {
        var readings = DayReadings()
        let file = try database.prepare(
            "SELECT id, left_out FROM files WHERE device=? AND stream=? AND date=?",
            device,
            stream,
            day.name
        )
        guard try file.step() else { return readings }
        readings.isCut = file.required(1) > 0
        let slots = try slots(of: file.required(0), on: day)
        let row = try database.prepare(
            "SELECT id, beacon, key, kind, records, last, value FROM series WHERE file=?",
            file.required(0)
        )
        while try row.step() {
            guard let series = slots[row.required(0)] else { continue }
            var all = DaySeries(last: (row.required(5), row.number(6) ?? 0))
            for slot in series { all.add(slot) }
            let quantity = QuantityName(beacon: row.text(1), key: row.text(2))
            readings.add(all, quantity, kind: row.text(3), records: Int(row.required(4)))
        }
        return readings
    }

    /// Returns the slots of a day for each series of a file.
    private func slots(of file: Int64, on day: Day) throws
        -> [Int64: [DaySeries.Slot]]
    {
        let row = try database.prepare(
            """
            SELECT series, low, high, total, records FROM readings WHERE file=? AND slot >= ? AND slot < ?
            """,
            file,
            IndexedPart.slot(of: day.start),
            IndexedPart.slot(of: day.end)
        )
        var slots: [Int64: [DaySeries.Slot]] = [:]
        while try row.step() {
            let slot = DaySeries.Slot(
                low: row.number(1) ?? 0,
                high: row.number(2) ?? 0,
                total: row.number(3) ?? 0,
                records: row.required(4)
            )
            slots.change(row.required(0), from: []) { $0.append(slot) }
        }
        return slots
    }
}

extension DayReadings {
    fileprivate mutating func add(
        _ all: DaySeries,
        _ quantity: QuantityName,
        kind: String,
        records: Int
    ) {
        guard !quantity.beacon.isEmpty else {
            series[quantity.key] = all
            return
        }
        beacons.change(quantity.beacon, from: DayBeacon()) {
            guard quantity.key == QuantityName.strength else {
                $0.readings[quantity.key] = all
                return
            }
            ($0.kind, $0.sightings, $0.strength) = (kind, records, all)
        }
    }
}
