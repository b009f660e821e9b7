// A batch: a frozen range of one stream, the unit of upload.
package import Host
package import Records
import SQLite

/// A range of records that is sent under one key until a server has judged it.
package struct Batch: Sendable, Equatable {
    package enum State: Int64, Sendable {
        /// Frozen, to be sent (again).
        case ready = 0
        case uploaded = 1
        /// Refused for good; kept for a person to look at.
        case quarantined = 2
    }

    /// Its row in the database.
    package var id: Int64
    /// The `Idempotency-Key`, the same at each try.
    package var key: String
    package var stream: Stream
    /// First and last sequence number, both included.
    package var first: Int64
    package var last: Int64
    package var state: State
    /// Answers that refused its records; failures of the network never count.
    package var attempts: Int
    /// The newest entry of the clock map that its timestamps use.
    ///
    /// Below 0: of the clock map in its own, older database, which froze it.
    package var clockMap: Int64
    /// When it was frozen, as it says in the body.
    package var sentAt: WallTime
    /// Whether the clock was synced then.
    package var synced: Bool
    /// The version that froze it, as it says in the body.
    package var appVersion: String
    /// The server's message, if it refused.
    package var error: String?
    /// The database that holds its records; 0: the live one.
    package var database: Int64 = 0

    package var records: Int { Int(last - first + 1) }
    package var partition: Partition { Partition(stream, of: database) }

    /// Its records, dated as they are in it.
    package var range: PendingRange {
        PendingRange(
            stream: stream,
            first: first,
            last: last,
            clockMap: clockMap,
            synced: synced,
            database: database
        )
    }
}

/// What is waiting to be frozen: a range, and the clock map to date it with.
package struct PendingRange: Sendable, Equatable {
    package var stream: Stream
    package var first: Int64
    package var last: Int64
    package var clockMap: Int64
    package var synced: Bool
    package var database: Int64 = 0

    package var partition: Partition { Partition(stream, of: database) }
}
