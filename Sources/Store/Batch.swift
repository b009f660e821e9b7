// A batch: a frozen range of one stream, the unit of upload.
package import Host

/// A range of records that is sent under one key until a server has judged it.
package struct Batch: Sendable, Equatable {
    package enum State: Int64, Sendable {
        /// Frozen, to be sent (again).
        case ready = 0
        case uploaded = 1
        /// Refused for good; kept for a person to look at.
        case quarantined = 2
        /// Its records are deleted, and older ones are still pending.
        case gone = 3
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
    package var clockMap: Int64
    /// When it was frozen, as it says in the body.
    package var sentAt: WallTime
    /// Whether the clock was synced then.
    package var synced: Bool
    /// The version that froze it, as it says in the body.
    package var appVersion: String
    /// The server's words, if it refused.
    package var error: String?

    package var records: Int { Int(last - first + 1) }
}

/// What is waiting to be frozen: a range, and the clock map to date it with.
package struct PendingRange: Sendable, Equatable {
    package var stream: Stream
    package var first: Int64
    package var last: Int64
    package var clockMap: Int64
    package var synced: Bool
}
