// The records of one stream in one database, and what is known of their numbers.
package import Records
import SQLite

/// The records of a stream in a database: 0 is the live one, others were set aside and are drained beside it.
package struct Partition: Sendable, Hashable {
    package var database: Int64
    package var stream: Stream

    package init(_ stream: Stream, of database: Int64 = 0) {
        self.database = database
        self.stream = stream
    }

    package var isLive: Bool { database == 0 }
}

/// What became of the numbers of a partition: a row of `sequences`, and the sums of its batches.
struct StreamCounters: Sendable, Equatable {
    /// The number of the next record.
    var next: Int64 = 1
    /// Numbers that are in a batch or gone; all others below `next` are pending.
    var frozen = FrozenRanges()
    var uploaded: Int64 = 0
    var evicted: Int64 = 0
    /// Chunks of sound below the level that is kept; they have no number.
    var notKept: Int64 = 0
    var quarantined: Int64 = 0
    /// Records in batches that are frozen and not judged yet.
    var ready: Int64 = 0
    /// Stored bytes of the records that no server has and that are not in quarantine; decides who gives way.
    var pendingBytes: Int64 = 0
    /// From which record on ids are made of the newest random number.
    var seeded: Int64 = 1
    /// Ids of new records are made of the random number of this start.
    var hasSeed = false

    /// The oldest numbers that no batch has, up to the first that one has.
    var oldestWaiting: ClosedRange<Int64>? { frozen.oldest(upTo: next - 1) }
    var newestWaiting: ClosedRange<Int64>? { frozen.newest(upTo: next - 1) }

    /// The parts of a range that no batch has, ascending; nil: of all numbers.
    func free(in range: ClosedRange<Int64>? = nil) -> [ClosedRange<Int64>] {
        frozen.free(in: range ?? 1...max(1, next - 1)).filter { $0.upperBound < next }
    }

    /// Records that no batch has yet.
    var waiting: Int64 { frozen.pending(upTo: next - 1) }

    /// Nothing is pending: neither in a batch nor outside of one.
    var holdsNothing: Bool { ready == 0 && waiting == 0 }

    /// Whether the stored row would be the same.
    func isStored(as other: Self) -> Bool {
        next == other.next && uploaded == other.uploaded && evicted == other.evicted
            && notKept == other.notKept && seeded == other.seeded
            && pendingBytes == other.pendingBytes
    }
}

/// The next rows of tables that other rows refer to: such a number never comes again.
struct RowNumbers: Sendable, Equatable {
    var segments: Int64 = 1
    var runs: Int64 = 1
    var beacons: Int64 = 1
    var batches: Int64 = 1
    var databases: Int64 = 1

    static let names: [(String, any WritableKeyPath<Self, Int64> & Sendable)] = [
        ("segments", \.segments), ("runs", \.runs), ("beacons", \.beacons),
        ("batches", \.batches), ("databases", \.databases),
    ]
}

extension Int64 {
    /// Whether it can be the number of a record or of a row, or a count of them; ids have room for no more.
    var isPlausible: Bool { (0...1 << 40).contains(self) }

    /// Throws damage for a number of the live database that cannot be.
    func checked(_ what: String) throws -> Int64 {
        guard !isPlausible else { return self }
        throw SQLiteError(code: 11, message: "\(what) is \(self)", statement: "")
    }
}
