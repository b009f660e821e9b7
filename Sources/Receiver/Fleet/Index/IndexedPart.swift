// Index rows of one part of a record file.
import SQLite

/// Collects the counts for the file's row, and writes the other rows.
struct IndexedPart {
    /// The length of a slot in milliseconds.
    static let slot: Int64 = 600_000

    let device: String
    let stream: String
    let file: Int64
    /// Later records count as dated ahead, marked or not: older archives have no marks.
    private let horizon: Int64
    private(set) var records: Int64 = 0
    private(set) var broken: Int64 = 0
    private(set) var first: Int64?
    private(set) var last: Int64?
    private var slots: [Int64: Int64] = [:]
    private var newest: (time: Int64, id: String, line: String)?

    /// `now`: milliseconds since 1970.
    init(device: String, stream: String, file: Int64, now: Int64) {
        horizon = now + Day.milliseconds
        self.device = device
        self.stream = stream
        self.file = file
    }

    /// Returns the slot of a time, also before 1970.
    static func slot(of time: Int64) -> Int64 {
        time / slot - (time % slot < 0 ? 1 : 0)
    }

    /// Adds a line; nil if it is too long.
    mutating func take(_ line: ByteView?, _ database: borrowing Connection) throws {
        guard let line, let record = RecordLine(line) else {
            broken += 1
            return
        }
        records += 1
        slots.change(Self.slot(of: record.time), from: 0) { $0 += 1 }
        let isAhead = record.isAhead || record.time > horizon
        if !isAhead { compare(record, line) }
        guard let event = record.event else { return }
        try put(event, of: record, isAhead: isAhead, line, database)
        guard !isAhead, RecordLine.stateKinds.contains(event.kind) else { return }
        try putState(event, of: record, line, database)
    }

    /// Updates first and newest; a record dated ahead would stay the newest for years.
    private mutating func compare(_ record: RecordLine, _ line: ByteView) {
        first = min(first ?? record.time, record.time)
        last = max(last ?? record.time, record.time)
        if newest.map({ ($0.time, $0.id) < (record.time, record.id) }) ?? true {
            newest = (record.time, record.id, Self.text(line, 0..<line.count))
        }
    }

    /// Writes the collected rows.
    func finish(_ database: borrowing Connection) throws {
        let count = try database.prepare(
            """
            INSERT INTO slots VALUES (?,?,?) ON CONFLICT(file, slot) DO UPDATE SET records=records+excluded.records
            """
        )
        for (slot, records) in slots {
            try count.bind([file, slot, records], from: 1)
            try count.run()
        }
        guard let newest else { return }
        let row = try database.prepare(
            """
            INSERT INTO latest VALUES (?,?,?,?,?,?) ON CONFLICT(device, stream) DO UPDATE SET time=excluded.time,
            id=excluded.id, file=excluded.file, line=excluded.line WHERE (excluded.time, excluded.id) > (time, id)
            """
        )
        try row.bind(device, at: 1)
        try row.bind(stream, at: 2)
        try row.bind(newest.time, at: 3)
        try row.bind(newest.id, at: 4)
        try row.bind(file, at: 5)
        try row.bind(newest.line, at: 6)
        try row.run()
    }

    private func put(
        _ event: RecordLine.Event,
        of record: RecordLine,
        isAhead: Bool,
        _ line: ByteView,
        _ database: borrowing Connection
    ) throws {
        let row = try database.prepare("INSERT OR REPLACE INTO events VALUES (?,?,?,?,?,?,?,?)")
        try row.bind(device, at: 1)
        try row.bind(record.time, at: 2)
        try row.bind(record.id, at: 3)
        try row.bind(file, at: 4)
        try row.bind(event.kind, at: 5)
        try row.bind(event.source, at: 6)
        // Otherwise it would count as lost in the last day once its date comes.
        try row.bind(isAhead ? nil : RecordLine.count(line, event.detail), at: 7)
        try row.bind(Self.text(line, event.detail), at: 8)
        try row.run()
    }

    private func putState(
        _ event: RecordLine.Event,
        of record: RecordLine,
        _ line: ByteView,
        _ database: borrowing Connection
    ) throws {
        let state = try database.prepare(
            """
            INSERT INTO states VALUES (?,?,?,?,?,?,?) ON CONFLICT(device, kind, source) DO UPDATE SET
            time=excluded.time, id=excluded.id, file=excluded.file, detail=excluded.detail
            WHERE (excluded.time, excluded.id) > (time, id)
            """
        )
        for (column, text) in [device, event.kind, event.source].enumerated() {
            try state.bind(text, at: Int32(column + 1))
        }
        try state.bind(record.time, at: 4)
        try state.bind(record.id, at: 5)
        try state.bind(file, at: 6)
        try state.bind(Self.text(line, event.detail), at: 7)
        try state.run()
    }

    /// Returns the text, or "" if it is too long to store.
    private static func text(_ line: ByteView, _ range: Range<Int>) -> String {
        range.count > IndexWriter.longestKept ? "" : String(decoding: line[range], as: UTF8.self)
    }
}
