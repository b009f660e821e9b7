// Reads the index of the record files for the fleet page.
package import SQLite
import ServerBase

/// An event as received.
package struct EventRow: Sendable {
    /// Milliseconds since 1970.
    package var time: Int64
    package var id: String
    package var kind: String
    package var source: String
    /// A JSON object; "" if it was too long to store.
    package var detail: String
}

/// The index's data about one device.
package struct DeviceFacts: Sendable {
    /// The newest record of each stream.
    package var latest: [String: (time: Int64, line: String)] = [:]
    /// The newest event of each kind and source.
    package var states: [EventRow] = []
    /// Records that events of the last day report as lost or quarantined.
    package var lost: Int64 = 0
    package var health: ReportedHealth?
    /// The mean seconds between its last health records; 0 if unknown.
    var healthInterval: Int64 = 0
    /// True if the index was unreadable for this device, so that the rest is unknown.
    package var isUnreadable = false

    package init(
        latest: [String: (time: Int64, line: String)] = [:],
        states: [EventRow] = [],
        lost: Int64 = 0,
        health: ReportedHealth? = nil,
        healthInterval: Int64 = 0,
        isUnreadable: Bool = false
    ) {
        self.latest = latest
        self.states = states
        self.lost = lost
        self.health = health
        self.healthInterval = healthInterval
        self.isUnreadable = isUnreadable
    }

    /// The content of each stream.
    package var contents: [String: StreamContent] {
        latest.mapValues { StreamContent(newest: $0.line) }
    }

    /// Returns the newest event of a kind, of any source.
    package func state(_ kind: String) -> EventRow? {
        states.filter { $0.kind == kind }.max { $0.time < $1.time }
    }
}

/// The records of a stream in a part of a span of time, and the slots with records.
package typealias TimelineCell = (records: Int64, slots: Int64)

/// A snapshot of the index; used by one thread.
package final class FleetReader {
    /// The kinds of event that report lost or quarantined records.
    static let losing = "('evicted', 'gap', 'quarantined')"

    /// Limits, newest first: archives of earlier versions may have any number.
    private static let maxStreams = 100
    private static let maxStates = 500
    package static let maxLosses = 5000

    package let database: Connection

    /// Nil if there is no index yet.
    package init?(directory: String) throws {
        guard let database = try FleetIndex.openToRead(in: directory) else { return nil }
        self.database = database
        // One transaction, so that all queries see the same state.
        try self.database.execute("BEGIN")
    }

    /// Returns whether all files have been indexed.
    package func isWhole() throws -> Bool { try FleetIndex.isWhole(database) }

    /// Returns the index's data about one device.
    ///
    /// The result is bounded, whatever the device sent. `now`: milliseconds since 1970.
    package func facts(of device: String, at now: Int64) throws -> DeviceFacts {
        var facts = DeviceFacts()
        facts.latest = try latest(of: device)
        facts.states = try states(of: device)
        facts.health = ReportedHealth(facts.latest)
        if let stream = facts.health?.stream {
            facts.healthInterval = try interval(of: stream, device)
        }
        // total(), not sum(): a sum of integers beyond 64 bits would fail the whole query.
        let lost = try database.prepare(
            """
            SELECT CAST(min(total(min(records, 1e12)), 1e15) AS INTEGER) FROM events
            WHERE device=?1 AND time > ?2 AND kind IN \(Self.losing)
            """,
            device,
            now - Day.milliseconds
        )
        if try lost.step() { facts.lost = lost.required(0) }
        return facts
    }

    package func latest(of device: String) throws -> [String: (time: Int64, line: String)] {
        let row = try database.prepare(
            """
            SELECT stream, time, line FROM latest WHERE device=?1 ORDER BY time DESC LIMIT \(Self.maxStreams)
            """,
            device
        )
        var latest: [String: (time: Int64, line: String)] = [:]
        while try row.step() { latest[row.text(0)] = (row.required(1), row.text(2)) }
        return latest
    }

    /// Returns the mean seconds between a stream's records of its last two days, at most a day.
    private func interval(of stream: String, _ device: String) throws -> Int64 {
        let seconds = try database.integer(
            """
            SELECT CAST(min(86400, (max(last) - min(first)) / 1000 / max(1, sum(records) - 1)) AS INTEGER)
            FROM (SELECT records, first, last FROM files WHERE device=?1 AND stream=?2 ORDER BY date DESC LIMIT 2)
            """,
            device,
            stream
        )
        return max(0, seconds ?? 0)
    }

    private func states(of device: String) throws -> [EventRow] {
        try database.rows(
            """
            SELECT device, time, id, kind, source, detail FROM states WHERE device=?1
            ORDER BY time DESC LIMIT \(Self.maxStates)
            """,
            device,
            read: Self.event
        )
    }

    @Sendable private static func event(_ row: borrowing Statement) -> EventRow {
        EventRow(
            time: row.required(1),
            id: row.text(2),
            kind: row.text(3),
            source: row.text(4),
            detail: row.text(5)
        )
    }

    /// Returns a device's events before a given one, newest first.
    package func events(
        of device: String,
        before place: (time: Int64, id: String),
        maximum: Int
    ) throws -> [EventRow] {
        try database.rows(
            """
            SELECT device, time, id, kind, source, detail FROM events WHERE device=?1 AND (time, id) < (?2, ?3)
            ORDER BY time DESC, id DESC LIMIT ?4
            """,
            device,
            place.time,
            place.id,
            Int64(maximum),
            read: Self.event
        )
    }

    /// Returns the days with records of a device, newest first, with their counts.
    package func days(of device: String) throws -> [(name: String, records: Int64)] {
        try database.rows(
            "SELECT date, sum(records) FROM files WHERE device=?1 GROUP BY date ORDER BY date DESC",
            device
        ) { ($0.text(0), $0.required(1)) }
    }

    /// Returns, for each stream of a device in a span of time, the cells with records.
    ///
    /// `step`: the slots of a cell; cells are counted from the first slot that begins in the span.
    package func cells(of device: String, in time: Range<Int64>, step: Int64) throws -> [String:
        [Int64: TimelineCell]]
    {
        let slots = IndexedPart.slots(in: time)
        let row = try database.prepare(
            """
            SELECT stream, (slot - ?4) / ?6, sum(slots.records), count(DISTINCT slot) FROM files JOIN slots ON file=id
            WHERE device=?1 AND date >= ?2 AND date <= ?3 AND slot >= ?4 AND slot < ?5 GROUP BY 1, 2
            """,
            device,
            Day(of: time.lowerBound).name,
            Day(of: time.upperBound - 1).name,
            slots.lowerBound,
            slots.upperBound,
            step
        )
        var streams: [String: [Int64: TimelineCell]] = [:]
        while try row.step() {
            let (number, cell) = (row.required(1), (row.required(2), row.required(3)))
            streams.change(row.text(0), from: [:]) { $0[number] = cell }
        }
        return streams
    }

    /// Returns the events around a span of time that report its losses; they may be days late.
    package func losses(of device: String, around time: Range<Int64>) throws -> [EventRow] {
        try database.rows(
            """
            SELECT device, time, id, kind, source, detail FROM events WHERE device=?1 AND time > ?2 AND time < ?3
            AND kind IN ('gap', 'evicted', 'source_lost', 'source_recovered', 'started', 'stopped')
            ORDER BY time LIMIT \(Self.maxLosses)
            """,
            device,
            time.lowerBound - 7 * Day.milliseconds,
            time.upperBound + 7 * Day.milliseconds,
            read: Self.event
        )
    }

    /// Returns each stream of a device: its records, and the times of the first and the last.
    package func streams(of device: String) throws -> [String: (
        records: Int64, first: Int64?, last: Int64?
    )] {
        let row = try database.prepare(
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
