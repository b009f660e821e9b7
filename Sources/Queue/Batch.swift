// A batch: a frozen range of one stream, the unit of upload.
package import Host
package import Records
import SQLite

/// A range of records sent under one key until the server has given its verdict.
package struct Batch: Sendable, Equatable {
    /// How its records are written; the bytes of each try are of the same form.
    package enum Form: Int64, Sendable {
        case rows = 0
        case columns = 1
    }

    package enum State: Int64, Sendable {
        /// Frozen, to be sent or resent.
        case ready = 0
        case uploaded = 1
        /// Rejected permanently; kept for a person to inspect.
        case quarantined = 2
    }

    /// Its row in the database.
    package var id: Int64
    /// The `Idempotency-Key`, the same on each retry.
    package var key: String
    package var stream: Stream
    /// First and last sequence number, inclusive.
    package var first: Int64
    package var last: Int64
    package var state: State
    /// How often the server rejected its records; network failures do not count.
    package var attempts: Int
    /// The newest clock map entry that its timestamps use.
    ///
    /// Negative: an entry of the older database that froze it.
    package var clockMap: Int64
    /// When it was frozen, as sent in the body.
    package var sentAt: WallTime
    /// Whether the clock was synced then.
    package var synced: Bool
    /// The version that froze it, as sent in the body.
    package var appVersion: String
    /// The server's message, if it rejected the batch.
    package var error: String?
    package var form = Form.rows
    /// The database that holds its records; 0 is the live one.
    package var database: Int64 = 0

    package var records: Int { Int(last - first + 1) }
    /// Whether its records can be sent in another way: in parts, or in rows.
    package var canBeSplit: Bool { records > 1 || form == .columns }
    package var partition: Partition { Partition(stream, of: database) }

    /// Its records, with the clock map that dates them.
    package var range: PendingRange {
        PendingRange(
            stream: stream,
            first: first,
            last: last,
            clockMap: clockMap,
            synced: synced,
            database: database,
            form: form
        )
    }
}

/// A range of records that can be frozen, and the clock map to date it with.
package struct PendingRange: Sendable, Equatable {
    package var stream: Stream
    package var first: Int64
    package var last: Int64
    package var clockMap: Int64
    package var synced: Bool
    package var database: Int64 = 0
    /// The form that its batch has; nil: not chosen yet.
    package var form: Batch.Form?

    package var partition: Partition { Partition(stream, of: database) }
}
