// The numbers measured in a stream, and the beacons heard, in a span of days, from the index.
import SQLite
import ServerBase
import ServerIndex

/// The range and the mean of a number over a span of time, and its latest value.
struct DaySeries {
    let range: ClosedRange<Double>
    let records: Int64
    let total: Double
    let last: Double

    var mean: Double { total / Double(max(1, records)) }

    /// Returns the numbers of a later time and these; nil: these alone.
    fileprivate func added(to later: DaySeries?) -> DaySeries {
        guard let later else { return self }
        let least = min(range.lowerBound, later.range.lowerBound)
        return DaySeries(
            range: least...max(range.upperBound, later.range.upperBound),
            records: records + later.records,
            total: total + later.total,
            last: later.last
        )
    }
}

/// A beacon's sightings over a span of time.
struct DayBeacon {
    var kind = ""
    var sightings = 0
    var readings: [String: DaySeries] = [:]

    var strength: DaySeries? { readings[QuantityName.strength] }
}

package struct DayReadings {
    /// Rows of the index that are added up for one stream; a year of ten beacons has fewer.
    private static let maxRows: Int64 = 4_000_000

    fileprivate(set) var series: [String: DaySeries] = [:]
    fileprivate(set) var beacons: [String: DayBeacon] = [:]
    /// True if series or beacons were left out.
    fileprivate(set) var isCut = false
    /// The UTC dates with records, newest first.
    fileprivate(set) var dates: [String] = []
    /// The first date whose numbers are added up; nil if all are.
    fileprivate(set) var since: String?
    fileprivate var rows: Int64 = 0

    fileprivate var isFull: Bool { rows >= Self.maxRows }
}

extension FleetReader {
    /// Returns the readings of a stream in a span of time; empty if there are none.
    func readings(of device: String, _ stream: String, in time: Range<Int64>) throws -> DayReadings
    {
        var readings = DayReadings()
        let files = try database.rows(
            """
            SELECT id, left_out, date FROM files WHERE device=? AND stream=? AND date >= ? AND date <= ?
            ORDER BY date DESC
            """,
            device,
            stream,
            Day(of: time.lowerBound).name,
            Day(of: time.upperBound - 1).name
        ) { (id: $0.required(0), leftOut: $0.required(1), date: $0.text(2)) }
        for file in files where !readings.isFull {
            if file.leftOut > 0 { readings.isCut = true }
            guard try read(file.id, in: time, &readings) else { continue }
            readings.dates.append(file.date)
        }
        if readings.isFull { readings.since = readings.dates.last }
        return readings
    }

    /// Adds the readings of a file; returns false if it has none in the span.
    ///
    /// The latest value is the file's if it is of the span, else the mean of the last ten minutes.
    private func read(_ file: Int64, in time: Range<Int64>, _ readings: inout DayReadings) throws
        -> Bool
    {
        let slots = IndexedPart.slots(in: time)
        let row = try database.prepare(
            """
            SELECT beacon, key, kind, count, least, most, sum, rows, CASE WHEN last < ?4 THEN value ELSE
            (SELECT total / records FROM readings WHERE file=?1 AND slot=top AND series=id) END FROM (
            SELECT series AS id, sum(records) AS count, min(low) AS least, max(high) AS most, total(total) AS sum,
            count(*) AS rows, max(slot) AS top
            FROM readings WHERE file=?1 AND slot >= ?2 AND slot < ?3 GROUP BY series) CROSS JOIN series USING (id)
            """,
            file,
            slots.lowerBound,
            slots.upperBound,
            slots.upperBound * IndexedPart.slot
        )
        var hasRows = false
        while try row.step() {
            hasRows = true
            let least = row.number(4) ?? 0
            let all = DaySeries(
                range: least...max(least, row.number(5) ?? 0),
                records: row.required(3),
                total: row.number(6) ?? 0,
                last: row.number(8) ?? 0
            )
            let quantity = QuantityName(beacon: row.text(0), key: row.text(1))
            readings.add(all, quantity, kind: row.text(2), rows: row.required(7))
        }
        return hasRows
    }
}

extension DayReadings {
    /// Adds a file's numbers; files come in order, the newest first.
    fileprivate mutating func add(
        _ all: DaySeries,
        _ quantity: QuantityName,
        kind: String,
        rows: Int64
    ) {
        self.rows += rows
        guard !quantity.beacon.isEmpty else {
            series[quantity.key] = all.added(to: series[quantity.key])
            return
        }
        beacons.change(quantity.beacon, from: DayBeacon()) {
            $0.readings[quantity.key] = all.added(to: $0.readings[quantity.key])
            guard quantity.key == QuantityName.strength else { return }
            if $0.kind.isEmpty { $0.kind = kind }
            $0.sightings += Int(all.records)
        }
    }
}
