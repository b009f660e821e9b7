// Indexes the numbers of one record file: minimum, mean and maximum in each ten minutes.
import SQLite
import ServerBase

/// Writes the rows in `series` and `readings` for newly appended lines.
///
/// Values are added to a row one by one in the order of the file, so that the rows do not depend on
/// how the file was divided into parts: sums of floating-point numbers would.
struct IndexedReadings {
    /// The maximum numbers per file of series without a beacon, of beacons, and of series per beacon.
    private static let maxSeries = 40
    private static let maxBeacons = 200
    private static let maxBeaconSeries = 12

    fileprivate struct SeriesRow {
        var id: Int64
        var kind: String
        var records: Int64
        /// The latest value, and its time in milliseconds since 1970.
        var last: (time: Int64, value: Double)
        var high: Double
        var isChanged = false
    }

    private struct SlotKey: Hashable {
        var series: Int64
        var slot: Int64
    }

    private let file: Int64
    private var beacons: IndexedBeacons
    /// All series of the file; nil until it is needed.
    private var known: [QuantityName: SeriesRow]?
    /// The number of series of each beacon.
    private var counts: [String: Int] = [:]
    /// The rows that have changed.
    private var sums: [SlotKey: SeriesInterval] = [:]
    /// Values for which there were too many series.
    private(set) var leftOut: Int64 = 0

    init(file: Int64) {
        self.file = file
        beacons = IndexedBeacons(file: file)
    }

    /// Adds a record's numbers; a beacon of one that is dated ahead was not seen last.
    mutating func receive(
        _ line: RecordLine,
        at time: Int64,
        in slot: Int64,
        isAhead: Bool,
        _ database: borrowing Connection
    ) throws {
        if known == nil { try load(database) }
        let kind = RecordNumbers.beacon(of: line) == nil ? "" : line.text("kind") ?? ""
        try RecordNumbers.each(in: line) { quantity, value in
            guard let id = try add(quantity, kind, value, at: time, database) else {
                return leftOut += 1
            }
            if !isAhead { try beacons.receive(quantity, value, kind, at: time, database) }
            let place = SlotKey(series: id, slot: slot)
            if sums[place] == nil { sums[place] = try stored(place, database) }
            sums.change(place, from: SeriesInterval()) { $0.add(1, value, value, value) }
        }
    }

    /// Writes the changed rows.
    func finish(_ database: borrowing Connection) throws {
        for series in (known ?? [:]).values where series.isChanged {
            try database.run(
                "UPDATE series SET kind=?, records=?, last=?, value=?, high=? WHERE id=?",
                row: [
                    series.kind, series.records, series.last.time, series.last.value, series.high,
                    series.id,
                ]
            )
        }
        try beacons.finish(database)
        for (place, sum) in sums {
            try database.run(
                "INSERT OR REPLACE INTO readings VALUES (?,?,?,?,?,?,?)",
                row: [
                    file, place.slot, place.series, sum.records, sum.total, sum.low, sum.high,
                ]
            )
        }
    }

    private mutating func load(_ database: borrowing Connection) throws {
        var series: [QuantityName: SeriesRow] = [:]
        let row = try database.prepare(
            "SELECT beacon, key, id, kind, records, last, value, high FROM series WHERE file=?",
            file
        )
        while try row.step() {
            let quantity = QuantityName(beacon: row.text(0), key: row.text(1))
            series[quantity] = SeriesRow(
                id: row.required(2),
                kind: row.text(3),
                records: row.required(4),
                last: (row.required(5), row.number(6) ?? 0),
                high: row.number(7) ?? 0
            )
            counts.change(quantity.beacon, from: 0) { $0 += 1 }
        }
        known = series
    }

    /// Counts a value for its series; returns the series' number, nil if there are too many.
    private mutating func add(
        _ quantity: QuantityName,
        _ kind: String,
        _ value: Double,
        at time: Int64,
        _ database: borrowing Connection
    ) throws -> Int64? {
        if known?[quantity] == nil {
            guard hasRoom(for: quantity.beacon) else { return nil }
            try database.run(
                """
                INSERT INTO series(file, beacon, key, kind, records, last, value, high)
                VALUES (?1,?2,?3,'',0,?4,?5,?5)
                """,
                row: [file, quantity.beacon, quantity.key, time, value]
            )
            let id = database.lastInsertedRow
            known?[quantity] = SeriesRow(
                id: id,
                kind: "",
                records: 0,
                last: (time, value),
                high: value
            )
            counts.change(quantity.beacon, from: 0) { $0 += 1 }
        }
        return known?[quantity]?.add(value, kind, at: time)
    }

    private func hasRoom(for beacon: String) -> Bool {
        guard !beacon.isEmpty else { return counts[""] ?? 0 < Self.maxSeries }
        if let count = counts[beacon] { return count < Self.maxBeaconSeries }
        return counts.count - (counts[""] == nil ? 0 : 1) < Self.maxBeacons
    }

    private func stored(_ place: SlotKey, _ database: borrowing Connection) throws -> SeriesInterval
    {
        let row = try database.prepare(
            "SELECT records, total, low, high FROM readings WHERE file=? AND slot=? AND series=?",
            file,
            place.slot,
            place.series
        )
        guard try row.step() else { return SeriesInterval() }
        return SeriesInterval(
            records: row.required(0),
            total: row.number(1) ?? 0,
            low: row.number(2) ?? 0,
            high: row.number(3) ?? 0
        )
    }
}

extension IndexedReadings.SeriesRow {
    fileprivate mutating func add(_ value: Double, _ kind: String, at time: Int64) -> Int64 {
        records += 1
        high = max(high, value)
        isChanged = true
        if last.time <= time { (last, self.kind) = ((time, value), kind) }
        return id
    }
}
