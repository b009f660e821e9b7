// Questions of the page to the index.
import SQLite

/// An event as it came.
struct EventRow: Sendable {
    /// Milliseconds since 1970.
    var time: Int64
    var id: String
    var kind: String
    var source: String
    /// A JSON object; "" where it was too long to be kept.
    var detail: String
}

/// What the index knows of one device.
struct DeviceFacts: Sendable {
    /// The newest record of each stream.
    var latest: [String: (time: Int64, line: String)] = [:]
    /// The newest event of each kind and source.
    var states: [EventRow] = []
    /// Records that events of the last day tell of as lost or set aside.
    var lost: Int64 = 0
    /// The index could not be read for this device: what is not here is unknown.
    var isUnreadable = false

    /// The newest event of a kind, of any source.
    func state(_ kind: String) -> EventRow? {
        states.filter { $0.kind == kind }.max { $0.time < $1.time }
    }
}

/// One look at the index; used by one thread.
final class FleetReader {
    /// The kinds of event that tell of records which will not come.
    private static let losing = "('evicted', 'gap', 'quarantined')"

    /// The newest are looked at: archives of earlier versions may have any number of them.
    private static let mostStreams = 100
    private static let mostStates = 500

    private let database: Connection

    /// Nil where there is no index yet.
    init?(directory: String) throws {
        guard let database = try FleetIndex.openToRead(in: directory) else { return nil }
        self.database = database
        // All answers of one look belong together.
        try self.database.execute("BEGIN")
    }

    /// Whether all files have been read into it.
    func isWhole() throws -> Bool { try FleetIndex.isWhole(database) }

    /// Returns what the index knows of one device.
    ///
    /// Whatever a device sent, an answer is bounded. `now`: milliseconds since 1970.
    func facts(of device: String, at now: Int64) throws -> DeviceFacts {
        var facts = DeviceFacts()
        facts.latest = try latest(of: device)
        facts.states = try states(of: device)
        // total(), not sum(): whole numbers that add up to more than 64 bits are an error of the whole query.
        let lost = try ask(
            """
            SELECT CAST(min(total(min(records, 1e12)), 1e15) AS INTEGER) FROM events
            WHERE device=?1 AND time > ?2 AND kind IN \(Self.losing)
            """,
            device
        )
        try lost.bind(now - Day.milliseconds, at: 2)
        if try lost.step() { facts.lost = lost.required(0) }
        return facts
    }

    private func latest(of device: String) throws -> [String: (time: Int64, line: String)] {
        let row = try ask(
            """
            SELECT stream, time, line FROM latest WHERE device=?1 ORDER BY time DESC LIMIT \(Self.mostStreams)
            """,
            device
        )
        var latest: [String: (time: Int64, line: String)] = [:]
        while try row.step() { latest[row.text(0)] = (row.required(1), row.text(2)) }
        return latest
    }

    private func states(of device: String) throws -> [EventRow] {
        let row = try ask(
            """
            SELECT device, time, id, kind, source, detail FROM states WHERE device=?1
            ORDER BY time DESC LIMIT \(Self.mostStates)
            """,
            device
        )
        var states: [EventRow] = []
        while try row.step() { states.append(Self.event(row)) }
        return states
    }

    private func ask(_ sql: String, _ device: String) throws -> Statement {
        let row = try database.prepare(sql)
        try row.bind(device, at: 1)
        return row
    }

    private static func event(_ row: borrowing Statement) -> EventRow {
        EventRow(
            time: row.required(1),
            id: row.text(2),
            kind: row.text(3),
            source: row.text(4),
            detail: row.text(5)
        )
    }

    /// A device's events before one of them, the newest first.
    func events(
        of device: String,
        before place: (time: Int64, id: String),
        most: Int
    ) throws -> [EventRow] {
        let row = try ask(
            """
            SELECT device, time, id, kind, source, detail FROM events WHERE device=?1 AND (time, id) < (?2, ?3)
            ORDER BY time DESC, id DESC LIMIT ?4
            """,
            device
        )
        try row.bind(place.time, at: 2)
        try row.bind(place.id, at: 3)
        try row.bind(Int64(most), at: 4)
        var events: [EventRow] = []
        while try row.step() { events.append(Self.event(row)) }
        return events
    }

    /// The days of which a device has records, the newest first, with how many.
    func days(of device: String) throws -> [(name: String, records: Int64)] {
        let row = try ask(
            "SELECT date, sum(records) FROM files WHERE device=?1 GROUP BY date ORDER BY date DESC",
            device
        )
        var days: [(name: String, records: Int64)] = []
        while try row.step() { days.append((row.text(0), row.required(1))) }
        return days
    }

    /// For each stream of a device's day the slots that have records, and how many.
    func slots(of device: String, on day: Day) throws -> [String: [Int64: Int64]] {
        let row = try ask(
            """
            SELECT stream, slot, slots.records FROM files JOIN slots ON file=id
            WHERE device=?1 AND date=?2 AND slot >= ?3 AND slot < ?4
            """,
            device
        )
        try row.bind(day.name, at: 2)
        try row.bind(IndexedPart.slot(of: day.start), at: 3)
        try row.bind(IndexedPart.slot(of: day.end), at: 4)
        var streams: [String: [Int64: Int64]] = [:]
        while try row.step() {
            let (slot, records) = (row.required(1), row.required(2))
            streams.change(row.text(0), from: [:]) { $0[slot] = records }
        }
        return streams
    }

    /// The events around a day that tell of losses on it; a loss may be told days later.
    func losses(of device: String, around day: Day) throws -> [EventRow] {
        let row = try ask(
            """
            SELECT device, time, id, kind, source, detail FROM events WHERE device=?1 AND time > ?2 AND time < ?3
            AND kind IN ('gap', 'evicted', 'source_lost', 'source_recovered', 'started') ORDER BY time LIMIT 2000
            """,
            device
        )
        try row.bind(day.start - 7 * Day.milliseconds, at: 2)
        try row.bind(day.end + 7 * Day.milliseconds, at: 3)
        var events: [EventRow] = []
        while try row.step() { events.append(Self.event(row)) }
        return events
    }

    /// What is kept of each stream of a device: records, and when the first and the last was made.
    func streams(of device: String) throws -> [String: (
        records: Int64, first: Int64?, last: Int64?
    )] {
        let row = try ask(
            "SELECT stream, sum(records), min(first), max(last) FROM files WHERE device=?1 GROUP BY stream",
            device
        )
        var streams: [String: (records: Int64, first: Int64?, last: Int64?)] = [:]
        while try row.step() {
            streams[row.text(0)] = (row.required(1), row.integer(2), row.integer(3))
        }
        return streams
    }
}
