// Indexes the newly appended lines of one record file.
import Host
package import SQLite
package import ServerBase

/// Counts the lines for the row in `files`, and writes the rows of the other tables.
package struct IndexedPart {
    /// The length of a slot in milliseconds.
    package static let slot: Int64 = 600_000

    package let device: String
    package let stream: String
    package let file: Int64
    /// Later records count as dated in the future, even without `clock: "future"`, which older
    /// archives lack.
    private let horizon: Int64
    private(set) var records: Int64 = 0
    private(set) var broken: Int64 = 0
    private(set) var first: Int64?
    private(set) var last: Int64?
    private var slots: [Int64: (records: Int64, start: Int64, end: Int64)] = [:]
    private var readings: IndexedReadings
    private var effort: IndexedEffort
    private var detections: IndexedDetections
    private var newest: (time: Int64, id: String, line: String)?

    /// `now`: milliseconds since 1970.
    package init(device: String, stream: String, date: String, file: Int64, now: Int64) {
        horizon = now + Day.milliseconds
        self.device = device
        self.stream = stream
        self.file = file
        readings = IndexedReadings(file: file)
        effort = IndexedEffort(date: date)
        detections = IndexedDetections(file: file)
    }

    /// Values that are not stored, because the file has too many series.
    package var leftOut: Int64 { readings.leftOut }

    /// Returns the slot of a time, also before 1970.
    package static func slot(of time: Int64) -> Int64 {
        time.floorDivided(by: slot)
    }

    /// Returns the slots that begin in a span of time.
    package static func slots(in time: Range<Int64>) -> Range<Int64> {
        slot(of: time.lowerBound - 1) + 1..<slot(of: time.upperBound - 1) + 1
    }

    /// Indexes a line.
    ///
    /// `line` is nil if it could not be parsed; it then counts as broken. `place`: its bytes.
    package mutating func receive(
        _ line: RecordLine?,
        at place: Range<Int64>,
        _ database: borrowing Connection
    ) throws {
        guard let line, let (id, time) = line.identity else { return broken += 1 }
        records += 1
        let slot = Self.slot(of: time)
        slots.change(slot, from: (0, place.lowerBound, place.lowerBound)) {
            invariant($0.end <= place.lowerBound, "the lines of a slot come in their order")
            $0 = ($0.records + 1, $0.start, place.upperBound)
        }
        effort.receive(line)
        let isAhead = line.isAhead || time > horizon
        try readings.receive(line, at: time, in: slot, isAhead: isAhead, database)
        try detections.receive(line, at: time, database)
        // A record dated ahead would stay the newest for years.
        if !isAhead {
            first = min(first ?? time, time)
            last = max(last ?? time, time)
            if newest.map({ ($0.time, $0.id) < (time, id) }) ?? true {
                newest = (time, id, Self.text(line, 0..<line.bytes.count))
            }
        }
        guard let event = line.event else { return }
        try put(event, of: line, id, time, isAhead: isAhead, database)
    }

    /// Writes the collected rows.
    package func finish(_ database: borrowing Connection) throws {
        for (slot, part) in slots {
            try database.run(
                """
                INSERT INTO slots VALUES (?,?,?,?,?) ON CONFLICT(file, slot) DO UPDATE SET
                records=records+excluded.records, end=excluded.end
                """,
                row: [file, slot, part.records, part.start, part.end]
            )
        }
        try readings.finish(database)
        try effort.finish(device, file, database)
        try detections.finish(database)
        guard let newest else { return }
        try database.run(
            """
            INSERT INTO latest VALUES (?,?,?,?,?,?) ON CONFLICT(device, stream) DO UPDATE SET time=excluded.time,
            id=excluded.id, file=excluded.file, line=excluded.line WHERE (excluded.time, excluded.id) > (time, id)
            """,
            row: [device, stream, newest.time, newest.id, file, newest.line]
        )
    }

    /// Writes an event, and the state of a source that it reports.
    private func put(
        _ event: RecordLine.Event,
        of line: RecordLine,
        _ id: String,
        _ time: Int64,
        isAhead: Bool,
        _ database: borrowing Connection
    ) throws {
        let detail = Self.text(line, event.detail)
        // A loss dated in the future would be reported as new when that date comes.
        let lost = isAhead ? nil : Self.lost(line, event.detail)
        try database.run(
            "INSERT OR REPLACE INTO events VALUES (?,?,?,?,?,?,?,?)",
            row: [device, time, id, file, event.kind, event.source, lost, detail]
        )
        guard !isAhead, RecordLine.stateKinds.contains(event.kind) else { return }
        try database.run(
            """
            INSERT INTO states VALUES (?,?,?,?,?,?,?) ON CONFLICT(device, kind, source) DO UPDATE SET
            time=excluded.time, id=excluded.id, file=excluded.file, detail=excluded.detail
            WHERE (excluded.time, excluded.id) > (time, id)
            """,
            row: [device, event.kind, event.source, time, id, file, detail]
        )
    }

    /// Returns the member `records` of an event's detail; nil if it is missing or not positive, and
    /// while the gateway was off as planned, which loses nothing.
    private static func lost(_ line: RecordLine, _ detail: Range<Int>) -> Int64? {
        guard let detail = line.object(detail), detail.text("state") != "off" else { return nil }
        return detail.integer("records").flatMap { $0 > 0 ? $0 : nil }
    }

    /// Returns the text, or "" if it is too long to store.
    private static func text(_ line: RecordLine, _ range: Range<Int>) -> String {
        range.count > IndexWriter.longestKept ? "" : line.raw(range)
    }
}
