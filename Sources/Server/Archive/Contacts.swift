// The times of contact with each device, and the facts that it reported about itself.
package import Host
package import SQLite
import ServerBase

/// A device that has sent something.
package struct Contact: Sendable {
    package var device: String
    package var firstSeen: WallTime
    package var lastSeen: WallTime
    /// Seconds between its last syncs, newest last.
    package var pauses: [Int64]
    /// As last reported; "" if missing.
    package var version: String
    package var clock: String
    package var streams: [String: StreamContact] = [:]
    /// Gaps in the sequence numbers of its records.
    package var missing: [MissingRecords] = []
}

/// The totals of one stream of a device.
package struct StreamContact: Sendable {
    package var records: Int64
    package var batches: Int64
    package var lastSeen: WallTime
}

/// Tables of the archive's index, changed in the transaction that stores a batch.
package enum Contacts {
    /// The number of pauses that are remembered.
    private static let remembered = 16
    /// Milliseconds; batches that come closer together belong to one sync.
    private static let oneSync: Int64 = 5000

    package static let tables = """
        CREATE TABLE IF NOT EXISTS devices(device TEXT PRIMARY KEY, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
        pauses TEXT NOT NULL, version TEXT NOT NULL, clock TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS streams(device TEXT, stream TEXT, records INTEGER NOT NULL DEFAULT 0,
        batches INTEGER NOT NULL DEFAULT 0, last_seen INTEGER NOT NULL DEFAULT 0, recent TEXT NOT NULL DEFAULT '',
        \(Sequences.columns), PRIMARY KEY (device, stream));
        """

    /// Records the arrival of a batch; `added`: its new records, nil if it was already stored.
    package static func record(
        _ batch: IncomingBatch,
        added: Int?,
        at now: WallTime,
        _ index: borrowing Connection
    ) throws {
        let sql = "SELECT first_seen, last_seen, pauses FROM devices WHERE device=?"
        let known = try index.prepare(sql, batch.device)
        let isKnown = try known.step()
        let first = isKnown ? known.required(0) : now.milliseconds
        let pauses = isKnown ? Self.pauses(known.text(2), since: known.required(1), now) : ""
        known.reset()
        try index.run(
            "INSERT OR REPLACE INTO devices VALUES (?,?,?,?,?,?)",
            row: [batch.device, first, now.milliseconds, pauses, batch.version, batch.clock]
        )
        let batches: Int64 = added == nil ? 0 : 1
        try index.run(
            """
            INSERT INTO streams(device, stream, records, batches, last_seen) VALUES (?,?,?,?,?) ON CONFLICT(device, stream) DO UPDATE SET
            records=records+excluded.records, batches=batches+excluded.batches, last_seen=excluded.last_seen
            """,
            row: [batch.device, batch.stream, Int64(added ?? 0), batches, now.milliseconds]
        )
    }

    /// Returns the pauses with the one that ends now, if it is longer than one sync.
    private static func pauses(_ text: String, since last: Int64, _ now: WallTime) -> String {
        // Not `-`: a damaged database may hold any number.
        let pause = now.milliseconds &- last
        guard pause >= oneSync else { return text }
        let pauses = text.split(separator: " ").map(String.init)
        return (pauses + ["\(pause / 1000)"]).suffix(remembered).joined(
            separator: " "
        )
    }

    // MARK: Reading

    /// Returns all devices of a data directory by id; none if no receiver has served it.
    package static func read(directory: String) throws -> [String: Contact] {
        let path = ArchiveFiles.index(in: directory)
        guard fileSize(path) != nil else { return [:] }
        return try read(Connection(path: path, access: .readOnly))
    }

    /// Returns one device of a data directory; nil if it has sent nothing.
    package static func read(directory: String, device: String) throws -> Contact? {
        try read(Connection(path: ArchiveFiles.index(in: directory), access: .readOnly), device)[
            device
        ]
    }

    /// `device`: only this one; nil for all.
    private static func read(_ index: borrowing Connection, _ device: String? = nil) throws
        -> [String: Contact]
    {
        let columns = "device, first_seen, last_seen, pauses, version, clock"
        let row = try select("SELECT \(columns) FROM devices", device, index)
        var contacts: [String: Contact] = [:]
        while try row.step() {
            contacts[row.text(0)] = Contact(
                device: row.text(0),
                firstSeen: WallTime(milliseconds: row.required(1)),
                lastSeen: WallTime(milliseconds: row.required(2)),
                pauses: row.text(3).split(separator: " ").compactMap { Int64($0) },
                version: row.text(4),
                clock: row.text(5)
            )
        }
        let totals = "device, stream, records, batches, last_seen"
        let stream = try select("SELECT \(totals) FROM streams", device, index)
        while try stream.step() {
            contacts[stream.text(0)]?.streams[stream.text(1)] = StreamContact(
                records: stream.required(2),
                batches: stream.required(3),
                lastSeen: WallTime(milliseconds: stream.required(4))
            )
        }
        for missing in try Sequences.missing(of: device, index) {
            contacts[missing.device]?.missing.append(missing)
        }
        return contacts
    }

    /// Returns the rows of one device, or of all.
    package static func select(
        _ sql: String,
        _ device: String?,
        _ index: borrowing Connection
    ) throws -> Statement {
        guard let device else { return try index.prepare(sql) }
        return try index.prepare("\(sql) WHERE device=?", device)
    }
}
