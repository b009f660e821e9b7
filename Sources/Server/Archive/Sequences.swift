// The gaps in each stream's sequence numbers, in the archive's index.
package import Host
import SQLite

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

    /// Records the numbers of a batch; called before `Contacts.record`, which overwrites the time of
    /// the batch before.
    static func record(
        _ batch: IncomingBatch,
        at now: WallTime,
        _ index: borrowing Connection
    )
        throws
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
            holes.record(range)
            since = before.holes.isEmpty ? row.required(4) : row.required(2)
            changed = holes.holes == before.holes ? row.required(3) : now.milliseconds
        } else {
            holes.record(range)
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
