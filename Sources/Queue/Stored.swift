// A record read from the queue.

/// A stored record with its sequence number and the boot that its stamp belongs to.
package struct Stored<Record> {
    package var sequence: Int64
    package var boot: Int64
    package var record: Record
}

extension Stored: Sendable where Record: Sendable {}
