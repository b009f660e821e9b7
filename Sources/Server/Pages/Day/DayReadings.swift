// The numbers measured in a stream's day, and the beacons heard, from the index.
import SQLite
import ServerBase
import ServerIndex

/// The range and the mean of a number over a day, and its latest value.
struct DaySeries {
    let range: ClosedRange<Double>
    let mean: Double
    let last: Double
}

/// A beacon's sightings over a day.
struct DayBeacon {
    var kind = ""
    var sightings = 0
    var readings: [String: DaySeries] = [:]

    var strength: DaySeries? { readings[QuantityName.strength] }
}

package struct DayReadings {
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
        let row = try database.prepare(
            """
            SELECT beacon, key, kind, series.records, value, least, most, mean FROM (
            SELECT series AS id, min(low) AS least, max(high) AS most, total(total) / sum(records) AS mean
            FROM readings WHERE file=? AND slot >= ? AND slot < ? GROUP BY series) CROSS JOIN series USING (id)
            """,
            file.required(0),
            IndexedPart.slot(of: day.start),
            IndexedPart.slot(of: day.end)
        )
        while try row.step() {
            let least = row.number(5) ?? 0
            let all = DaySeries(
                range: least...max(least, row.number(6) ?? 0),
                mean: row.number(7) ?? 0,
                last: row.number(4) ?? 0
            )
            let quantity = QuantityName(beacon: row.text(0), key: row.text(1))
            readings.add(all, quantity, kind: row.text(2), records: Int(row.required(3)))
        }
        return readings
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
            $0.readings[quantity.key] = all
            if quantity.key == QuantityName.strength { ($0.kind, $0.sightings) = (kind, records) }
        }
    }
}
