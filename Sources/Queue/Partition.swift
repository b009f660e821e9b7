// A partition: the records of one stream in one database, and its counters.
package import Records
import SQLite

/// Names the records of one stream in one database.
///
/// Each stream has a partition in the live database, which has the number 0, and one more in each
/// quarantined database whose records are still being uploaded. Records are numbered from 1 within
/// a partition.
package struct Partition: Sendable, Hashable {
    package var database: Int64
    package var stream: Stream

    package init(_ stream: Stream, of database: Int64 = 0) {
        self.database = database
        self.stream = stream
    }

    package var isLive: Bool { database == 0 }
}

/// Counts the records of a partition: its row of `sequences`, and the totals of its batches.
struct StreamCounters: Sendable, Equatable {
    /// The number of the next record.
    var next: Int64 = 1
    /// The numbers of records that are in a batch, uploaded or deleted; all others below `next` are
    /// pending and in no batch.
    var frozen = FrozenRanges()
    var uploaded: Int64 = 0
    var evicted: Int64 = 0
    /// Audio chunks below the minimum level; they do not have a number.
    var notKept: Int64 = 0
    var quarantined: Int64 = 0
    /// Records in frozen batches that wait for a verdict.
    var ready: Int64 = 0
    /// Stored bytes of pending records, in a batch or not; decides which stream is evicted first.
    var pendingBytes: Int64 = 0
    /// The first record whose id uses the newest random number.
    var seeded: Int64 = 1
    /// Ids of new records use this process's random number.
    var hasSeed = false

    /// The oldest unbatched numbers, up to the first batched one.
    var oldestWaiting: ClosedRange<Int64>? { frozen.oldest(upTo: next - 1) }
    var newestWaiting: ClosedRange<Int64>? { frozen.newest(upTo: next - 1) }

    /// Returns the unbatched parts of a range, ascending; nil means all numbers.
    func free(in range: ClosedRange<Int64>? = nil) -> [ClosedRange<Int64>] {
        frozen.free(in: range ?? 1...max(1, next - 1)).filter { $0.upperBound < next }
    }

    /// Records that are not in a batch yet.
    var waiting: Int64 { frozen.pending(upTo: next - 1) }

    /// Numbers that no counter knows, such as those of held records.
    var uncounted: Int64 { next - 1 - uploaded - evicted - quarantined - ready - waiting }

    /// Nothing is pending, in a batch or not.
    var holdsNothing: Bool { ready == 0 && waiting == 0 }

    /// Whether both would be stored as the same row.
    func isStored(as other: Self) -> Bool {
        next == other.next && uploaded == other.uploaded && evicted == other.evicted
            && notKept == other.notKept && seeded == other.seeded
            && pendingBytes == other.pendingBytes
    }
}

/// The next row numbers of tables that others refer to; numbers are never reused.
struct RowNumbers: Sendable, Equatable {
    var segments: Int64 = 1
    var runs: Int64 = 1
    var beacons: Int64 = 1
    var batches: Int64 = 1
    var databases: Int64 = 1
    /// Not a number but a sum: the stored bytes of held sound.
    var heldBytes: Int64 = 0

    static let names: [(String, any WritableKeyPath<Self, Int64> & Sendable)] = [
        ("segments", \.segments), ("runs", \.runs), ("beacons", \.beacons),
        ("batches", \.batches), ("databases", \.databases), ("held_bytes", \.heldBytes),
    ]
}

extension Int64 {
    /// Whether it is a possible record or row number, or count; ids have 40 bits for it.
    var isPlausible: Bool { (0...1 << 40).contains(self) }

    /// Throws damage for an impossible number in the live database.
    func checked(_ what: String) throws -> Int64 {
        try requireIntact(isPlausible, "\(what) is \(self)")
        return self
    }
}

/// Throws damage with this message unless what is in the tables fits together.
func requireIntact(_ isIntact: Bool, _ message: @autoclosure () -> String) throws(SQLiteError) {
    guard !isIntact else { return }
    throw SQLiteError(code: 11, message: message(), statement: "")
}
