// Reads the beacons of all devices from the index.
import SQLite
package import ServerBase

/// The newest sighting of a beacon by a stream of a device.
package struct HeardBeacon: Sendable {
    package var beacon: String
    package var device: String
    package var stream: String
    /// Milliseconds since 1970.
    package var time: Int64
    package var kind: String
    /// The charge of its battery in percent, to compare it by; nil if unknown.
    package var charge: Double?
    fileprivate var file: Int64

    package var day: Day { Day(of: time) }
}

extension FleetReader {
    /// The maximum number of sightings that are read for a list of beacons.
    package static let maxSightings = 20_000
    /// The maximum number of devices that are shown of a beacon, and of days of each.
    private static let (maxDevices, maxDays) = (50, 62)

    private static let sightings =
        "SELECT beacon, device, stream, time, kind, charge, file FROM beacons"

    @Sendable private static func sighting(_ row: borrowing Statement) -> HeardBeacon {
        HeardBeacon(
            beacon: row.text(0),
            device: row.text(1),
            stream: row.text(2),
            time: row.required(3),
            kind: row.text(4),
            charge: row.number(5),
            file: row.required(6)
        )
    }

    /// Returns the newest sightings of all beacons; `byCharge`: those with the emptiest batteries.
    package func sightings(byCharge: Bool = false) throws -> [HeardBeacon] {
        let order = byCharge ? "WHERE charge IS NOT NULL ORDER BY charge" : "ORDER BY time DESC"
        let sql = "\(Self.sightings) \(order) LIMIT \(Self.maxSightings)"
        return try database.rows(sql, read: Self.sighting)
    }

    /// Returns the newest sighting of a beacon by each device, newest first.
    package func sightings(of beacon: String) throws -> [HeardBeacon] {
        let sql = "\(Self.sightings) WHERE beacon=? ORDER BY time DESC LIMIT \(Self.maxDevices)"
        return try database.rows(sql, beacon, read: Self.sighting)
    }

    /// Returns the last numbers of a beacon on the day of a sighting, by their names.
    package func numbers(of heard: HeardBeacon) throws -> [(key: String, value: Double)] {
        let sql = "SELECT key, value FROM series WHERE file=? AND beacon=? ORDER BY key"
        return try database.rows(sql, heard.file, heard.beacon) { ($0.text(0), $0.number(1) ?? 0) }
    }

    /// Returns the last value of a number on an earlier day, the first of the week before a
    /// sighting; nil if there is none.
    package func before(_ heard: HeardBeacon, _ key: String) throws -> (day: Day, value: Double)? {
        let row = try database.prepare(
            """
            SELECT date, value FROM files JOIN series ON file=files.id AND beacon=?1 AND key=?2
            WHERE device=?3 AND stream=?4 AND date >= ?5 AND date < ?6 ORDER BY date LIMIT 1
            """,
            heard.beacon,
            key,
            heard.device,
            heard.stream,
            Day(of: heard.time - 7 * Day.milliseconds).name,
            heard.day.name
        )
        guard try row.step(), let day = Day(row.text(0)) else { return nil }
        return (day, row.number(1) ?? 0)
    }

    /// Returns the days on which a device heard a beacon, newest first.
    package func days(of heard: HeardBeacon) throws -> [(
        day: Day, sightings: Int64, strongest: Double
    )] {
        try database.rows(
            """
            SELECT date, series.records, high FROM (SELECT id, date FROM files WHERE device=?1 AND stream=?2
            AND date <= ?3 ORDER BY date DESC LIMIT \(Self.maxDays)) AS days
            JOIN series ON file=days.id AND beacon=?4 AND key=?5 ORDER BY date DESC
            """,
            heard.device,
            heard.stream,
            heard.day.name,
            heard.beacon,
            QuantityName.strength
        ) { row in
            Day(row.text(0)).map { ($0, row.required(1), row.number(2) ?? 0) }
        }
    }
}
