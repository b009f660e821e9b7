// Gaps in the sequence numbers of a device's records, which show what a restored server has lost.
package import Host
import SQLite

/// The sequence numbers of one stream that have arrived: all from the first batch on, except the
/// holes.
///
/// A gateway numbers the records of a stream without gaps, but sends the newest between batches of
/// a backlog, so a hole may still fill up. One that stays was evicted or refused on the device, or
/// was stored here after the backup that the server was restored from.
struct SequenceHoles: Equatable {
    /// The number of holes remembered, largest first.
    private static let most = 50
    /// A higher number is ignored as invalid.
    private static let highest: Int64 = 1 << 50

    /// One more than the highest number.
    private(set) var next: Int64
    /// In ascending order.
    private(set) var holes: [ClosedRange<Int64>]

    /// Returns the range that a batch declares; nil if it cannot be sequence numbers.
    static func range(from first: Int64?, to last: Int64?) -> ClosedRange<Int64>? {
        guard let first, let last, first >= 0, first <= last, last < highest else { return nil }
        return first...last
    }

    init(next: Int64, holes: [ClosedRange<Int64>] = []) { (self.next, self.holes) = (next, holes) }

    /// Records that these numbers have arrived.
    mutating func note(_ range: ClosedRange<Int64>) {
        holes = holes.flatMap { hole -> [ClosedRange<Int64>] in
            guard hole.overlaps(range) else { return [hole] }
            var rest: [ClosedRange<Int64>] = []
            if hole.lowerBound < range.lowerBound {
                rest.append(hole.lowerBound...range.lowerBound - 1)
            }
            if range.upperBound < hole.upperBound {
                rest.append(range.upperBound + 1...hole.upperBound)
            }
            return rest
        }
        if next < range.lowerBound { holes.append(next...range.lowerBound - 1) }
        next = max(next, range.upperBound + 1)
        guard holes.count > Self.most, let least = holes.min(by: { $0.count < $1.count }) else {
            return
        }
        holes.removeAll { $0 == least }
    }

    // MARK: As text: `21-30 41-50`

    init(next: Int64, text: String) {
        self.next = next
        holes = text.split(separator: " ").compactMap { part in
            let ends = part.split(separator: "-").compactMap { Int64($0) }
            return ends.count == 2 ? Self.range(from: ends[0], to: ends[1]) : nil
        }
    }

    var text: String { holes.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: " ") }
}

/// The holes in the sequence of a device's stream.
package struct MissingRecords: Sendable {
    package var device: String
    package var stream: String
    package var records: Int64
    /// From the first missing number to the last.
    package var numbers: ClosedRange<Int64>
    /// The time of the last batch before the holes.
    package var since: WallTime
    /// The time of the last change of the holes; they shrink while a backlog arrives.
    package var changed: WallTime
}

/// Columns of the table `streams`, changed in the transaction that stores a batch.
enum Sequences {
    static let columns =
        "next INTEGER, holes TEXT NOT NULL DEFAULT '', since INTEGER, changed INTEGER"

    /// Records the numbers of a batch; called before `Contacts.note`, which overwrites the time of
    /// the batch before.
    static func note(_ batch: IncomingBatch, at now: WallTime, _ index: borrowing Connection) throws
    {
        guard let range = batch.sequence else { return }
        let row = try index.prepare(
            """
            SELECT next, holes, since, changed, last_seen FROM streams
            WHERE device=? AND stream=? AND next NOTNULL
            """,
            batch.device,
            batch.stream
        )
        var holes = SequenceHoles(next: range.lowerBound)
        var (since, changed) = (now.milliseconds, now.milliseconds)
        if try row.step() {
            let before = SequenceHoles(next: row.required(0), text: row.text(1))
            holes = before
            holes.note(range)
            since = before.holes.isEmpty ? row.required(4) : row.required(2)
            changed = holes.holes == before.holes ? row.required(3) : now.milliseconds
        } else {
            holes.note(range)
        }
        row.reset()
        try index.run(
            """
            INSERT INTO streams(device, stream, next, holes, since, changed) VALUES (?,?,?,?,?,?)
            ON CONFLICT(device, stream) DO UPDATE SET next=excluded.next, holes=excluded.holes, since=excluded.since,
            changed=excluded.changed
            """,
            row: [batch.device, batch.stream, holes.next, holes.text, since, changed]
        )
    }

    /// Returns the streams with holes, of all devices or one.
    static func missing(of device: String?, _ index: borrowing Connection) throws
        -> [MissingRecords]
    {
        let columns = "device, stream, holes, since, changed"
        let row = try Contacts.select(
            "SELECT \(columns) FROM (SELECT * FROM streams WHERE holes<>'')",
            device,
            index
        )
        var all: [MissingRecords] = []
        while try row.step() {
            let holes = SequenceHoles(next: 0, text: row.text(2)).holes
            guard let first = holes.first, let last = holes.last else { continue }
            all.append(
                MissingRecords(
                    device: row.text(0),
                    stream: row.text(1),
                    records: holes.reduce(0) { $0 + Int64($1.count) },
                    numbers: first.lowerBound...last.upperBound,
                    since: WallTime(milliseconds: row.required(3)),
                    changed: WallTime(milliseconds: row.required(4))
                )
            )
        }
        return all
    }
}
