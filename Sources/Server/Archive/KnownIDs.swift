// Finds and adds the record ids of one device.
import Host
import SQLite

/// The ids of a device, for the records of one batch.
///
/// Keeps the range of the last id in memory, so that ascending ids take a few statements per batch.
/// Used inside one transaction; call `finish` after the last `claim`.
struct KnownIDs {
    /// A part of the UUIDs with one high half: a known range, and the unknown ones behind it.
    private struct Span {
        var high: Int64
        var all: ClosedRange<Int64>
        /// Nil if no UUID in `all` is known.
        var known: ClosedRange<Int64>?
        var isChanged = false
    }

    private let device: Int64
    private var span: Span?

    init(of device: String, _ index: borrowing Connection) throws {
        self.device = try KnownRecords.number(of: device, index)
    }

    /// Returns whether an id is known.
    mutating func contains(_ id: String, _ index: borrowing Connection) throws -> Bool {
        guard let number = UUIDNumber(id) else {
            let sql = "SELECT 1 FROM other_ids WHERE device=? AND id=?"
            return try index.integer(sql, device, id) != nil
        }
        return try around(number, index).known?.contains(number.low) ?? false
    }

    /// Adds an id; returns false if it is known.
    mutating func claim(_ id: String, _ index: borrowing Connection) throws -> Bool {
        guard let number = UUIDNumber(id) else {
            try index.run("INSERT OR IGNORE INTO other_ids VALUES (?,?)", device, id)
            return index.changes == 1
        }
        let low = number.low
        var found = try around(number, index)
        if let known = found.known, known.contains(low) { return false }
        if let known = found.known, low - 1 == known.upperBound {
            found.known = known.lowerBound...low
        } else {
            try finish(index)
            (found.all, found.known) = (low...found.all.upperBound, low...low)
        }
        found.isChanged = true
        mustHold(low <= found.all.upperBound, "a new id lies before the next known range")
        span = found
        return true
    }

    /// Returns the span of an id: from the range before or around it up to the next range.
    private mutating func around(_ id: UUIDNumber, _ index: borrowing Connection) throws -> Span {
        if let span, span.high == id.high, span.all.contains(id.low) { return span }
        try finish(index)
        let rows = "FROM id_ranges WHERE device=? AND high=? AND first"
        let next = try index.integer("SELECT min(first) \(rows)>?", device, id.high, id.low)
        let row = try index.prepare(
            "SELECT first, last \(rows)<=? ORDER BY first DESC LIMIT 1",
            device,
            id.high,
            id.low
        )
        // A database that somebody changed must not end the server, here and below.
        let end = max(id.low, next.map { $0 &- 1 } ?? .max)
        var found = Span(high: id.high, all: .min...end)
        if try row.step() {
            let known = row.required(0)...max(row.required(0), row.required(1))
            (found.all, found.known) = (known.lowerBound...found.all.upperBound, known)
        }
        span = found
        return found
    }

    /// Stores what was added, in one row with the next range if they touch.
    mutating func finish(_ index: borrowing Connection) throws {
        guard let span, span.isChanged, let known = span.known else { return }
        self.span = nil
        var last = known.upperBound
        if last == span.all.upperBound, last < .max {
            let (row, next) = ("FROM id_ranges WHERE device=? AND high=? AND first=?", last + 1)
            last = try index.integer("SELECT last \(row)", device, span.high, next) ?? last
            try index.run("DELETE \(row)", device, span.high, next)
        }
        try index.run(
            "INSERT OR REPLACE INTO id_ranges VALUES (?,?,?,?)",
            row: [device, span.high, known.lowerBound, last]
        )
    }
}
