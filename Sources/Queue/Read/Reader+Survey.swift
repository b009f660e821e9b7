// Reads surveys: their records, and the sightings of one that has ended.
import Host
package import Records
import SQLite

extension Reader {
    /// Returns the beacon in a row of `beacons`.
    package func beacon(_ row: Int64) throws -> BeaconIdentity? { try identity(row) }

    /// Calls `body` with each fix of the survey's track, in order.
    package func track(_ body: (_ boot: Int64, Place) throws -> Void) throws {
        let rows = try query(
            "SELECT boot, latitude_e7, longitude_e7 FROM survey_track ORDER BY boot, boottime"
        )
        while try rows.step() {
            try body(rows.required(0), Self.place(rows.required(1), rows.required(2)))
        }
    }

    /// Calls `body` with each existing sighting of a range in order; one transaction per page.
    package func samples(
        _ range: ClosedRange<Int64>,
        page: Int64 = 4096,
        _ body: (SurveySample) throws -> Void
    ) throws {
        let rows = try query(
            """
            SELECT id, beacon, boot, boottime, wall, rssi FROM sightings
            WHERE id BETWEEN ? AND ? ORDER BY id
            """
        )
        var places = try SurveyPlaces(
            query(
                """
                SELECT boottime, latitude_e7, longitude_e7 FROM survey_track
                WHERE boot=? AND boottime<=? ORDER BY boottime DESC LIMIT 1
                """
            ),
            next: query("SELECT min(boottime) FROM survey_track WHERE boot=? AND boottime>?")
        )
        for first in stride(from: range.lowerBound, through: range.upperBound, by: Int(page)) {
            try rows.bind(first, at: 1)
            try rows.bind(min(range.upperBound, first + page - 1), at: 2)
            while try rows.step() {
                let (boot, boottime) = (rows.required(2), rows.required(3))
                try body(
                    SurveySample(
                        beacon: rows.required(1),
                        rssi: rows.integer(5).map { Int($0) },
                        boot: boot,
                        stamp: rows.stamp(boottime: 3),
                        place: places.place(boot, boottime)
                    )
                )
            }
            rows.reset()
        }
    }

    fileprivate static func place(_ latitude: Int64, _ longitude: Int64) -> Place {
        Place(latitude: Double(latitude) / 1e7, longitude: Double(longitude) / 1e7)
    }
}

/// Finds where the gateway was; caches the last answer, as sightings come in order of time.
private struct SurveyPlaces: ~Copyable {
    /// The maximum age in ms of a fix that locates a sighting.
    private static let limit: Int64 = 10_000

    private let before: Statement
    private let next: Statement
    private var boot: Int64 = 0
    /// The boot times for which `found` is valid.
    private var span: Range<Int64> = 0..<0
    private var found: (boottime: Int64, place: Place)?

    init(_ before: consuming Statement, next: consuming Statement) {
        self.before = before
        self.next = next
    }

    mutating func place(_ boot: Int64, _ boottime: Int64) throws -> Place? {
        if boot != self.boot || !span.contains(boottime) { try look(boot, boottime) }
        guard let found, boottime - found.boottime <= Self.limit else { return nil }
        return found.place
    }

    private mutating func look(_ boot: Int64, _ boottime: Int64) throws {
        try before.bind(boot, at: 1)
        try before.bind(boottime, at: 2)
        found = nil
        if try before.step() {
            let place = Reader.place(before.required(1), before.required(2))
            found = (before.required(0), place)
        }
        before.reset()
        try next.bind(boot, at: 1)
        try next.bind(boottime, at: 2)
        let end = try next.step() ? next.integer(0) : nil
        next.reset()
        self.boot = boot
        span = (found?.boottime ?? 0)..<max(boottime + 1, end ?? .max)
    }
}
