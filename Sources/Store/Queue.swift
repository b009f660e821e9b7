// The queue: where every source puts its records and the uploader finds them.
package import Board
package import Host
internal import Synchronization

/// The one queue.
///
/// `accept` may be called from any thread and never blocks on the disk.
package final class Queue: Sendable {
    /// Records that sources may have under way to the writer before more are refused (and counted).
    package static let mailboxLimit = 20_000

    private let nextRun = Atomic<Int64>(1)

    /// An id for a new run of sound, unique in this database.
    package func newRunID() -> Int64 {
        nextRun.wrappingAdd(1, ordering: .relaxed).oldValue
    }

    /// Each `accept` returns false, and counts the record as lost to an overrun, when the writer is too
    /// far behind.
    @discardableResult package func accept(_ sighting: Sighting) -> Bool { true }
    @discardableResult package func accept(_ fix: Fix) -> Bool { true }
    @discardableResult package func accept(_ event: Event) -> Bool { true }

    /// Sound comes as: `begin(run)`, its segments in order, `end(run:)`.
    package func begin(_ run: AudioRun) {}
    @discardableResult package func accept(_ segment: Segment) -> Bool { true }
    package func end(run: Int64) {}
}
