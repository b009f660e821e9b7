// Turns a quarantined database into a second, read-only queue, whose records are uploaded in place.
import Host
import Records
import SQLite
import Synchronization

/// Imports the bookkeeping of each quarantined database and finds out which records are readable.
///
/// Records keep their rows and ids and are not copied. First, one transaction imports which numbers
/// were assigned and uploaded. Then every pending record is read once; unreadable ones are recorded
/// as lost. Then the streams are drained alongside the live ones. After a crash between two steps,
/// only reading is repeated.
struct Salvage: Sendable {
    /// The number of records read at once.
    private static let page: Int64 = 512

    /// The ranges that are still to be read.
    private struct Vetting: Sendable {
        var database: Int64
        /// The name of its file.
        var name: String
        var ranges: [(stream: Stream, range: ClosedRange<Int64>)]
    }

    /// The maximum number of consecutive disk errors; there is one retry per minute.
    private static let refusalLimit = 60

    private unowned let queue: Queue
    /// The live database's generation; results read under an earlier one are discarded.
    private let generation: Int
    private var vetting: Vetting?
    private(set) var refusals: Int
    private var patience: Patience { refusals < Self.refusalLimit ? .waits : .isOver }

    init(_ queue: Queue, refusals: Int = 0) {
        self.queue = queue
        generation = queue.generation
        self.refusals = refusals
    }

    /// Runs one step; returns false when all databases are done.
    ///
    /// Throws errors of the live database or the disk; the step is retried later.
    mutating func step() throws -> Bool {
        do {
            let hasMore = try next()
            refusals = 0
            return hasMore
        } catch let error as Refusal {
            refusals += 1
            throw error
        } catch let damage as DatabaseDamagedError {
            queue.reportDamage(damage.why, generation: generation)
            throw damage
        }
    }

    private mutating func next() throws -> Bool {
        let settings = queue.settings
        if let current = vetting, !DatabaseFile.isGone(current.name, settings) {
            return try vet(current)
        }
        vetting = nil
        let known = try perform { try $0.olderDatabases() }
        // Check here first, so that the writer's thread does not list a folder for each database.
        for older in known
        where older.state != .finished && DatabaseFile.isGone(older.name, settings) {
            if try perform({ try $0.giveUpIfGone(older.id) }) { return true }
        }
        // Newest first: it knows the state of those before it.
        for path in DatabaseFile.setAside(settings).reversed() {
            let name = DatabaseFile.name(path)
            switch known.first(where: { $0.name == name }) {
            case nil:
                try adopt(path, name)
                return true
            case let found? where found.state == .adopted:
                try begin(found)
                return true
            default: continue
            }
        }
        return false
    }

    private func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        let (queue, generation) = (queue, generation)
        return try queue.perform { writer in
            guard queue.generation == generation else {
                throw QueueClosedError()
            }
            return try body(writer)
        }
    }

    private func adopt(_ path: String, _ name: String) throws {
        let inheritance = try reading { try Inheritance(path, queue.settings, patience) }
        let isSurveying = try perform { writer in
            try writer.adopt(inheritance, name: name)
            return writer.survey?.isOpen ?? false
        }
        if isSurveying { queue.isSurveying.store(true, ordering: .relaxed) }
    }

    /// A disk error while reading a quarantined database, as opposed to the live one.
    private struct Refusal: Error {}

    private func reading<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as SQLiteError where error.isRefusal {
            throw Refusal()
        }
    }

    private mutating func begin(_ older: OlderDatabase) throws {
        let ranges = try perform { try $0.unread(of: older.id) }
        vetting = Vetting(database: older.id, name: older.name, ranges: ranges)
    }

    private mutating func vet(_ current: Vetting) throws -> Bool {
        var current = current
        guard let next = current.ranges.first else {
            vetting = nil
            let database = current.database
            try perform { try $0.finishSalvage(database) }
            return true
        }
        let end = min(next.range.upperBound, next.range.lowerBound + Self.page - 1)
        let page = next.range.lowerBound...end
        let partition = Partition(next.stream, of: current.database)
        let older = try OlderDatabase(current.database, queue.settings)
        let lost = try reading {
            let reader = try patience.read { try Reader(queue.settings, older: older, patience) }
            return try unreadable(page, of: next.stream, reader)
        }
        try perform { writer in
            for range in lost { try writer.lose(partition, range) }
        }
        if end == next.range.upperBound {
            current.ranges.removeFirst()
        } else {
            current.ranges[0].range = (end + 1)...next.range.upperBound
        }
        vetting = current
        return true
    }

    /// Returns the unreadable parts of a range, halving it down to single records.
    private func unreadable(
        _ range: ClosedRange<Int64>,
        of stream: Stream,
        _ reader: Reader?
    ) throws -> [ClosedRange<Int64>] {
        guard let reader else { return [range] }
        func isReadable(_ range: ClosedRange<Int64>) throws -> Bool {
            try patience.read { try reader.check(stream, range) } != nil
        }
        if try isReadable(range) { return [] }
        guard range.count > 1 else { return [range] }
        let middle = range.lowerBound + Int64(range.count / 2) - 1
        return try unreadable(range.lowerBound...middle, of: stream, reader)
            + unreadable((middle + 1)...range.upperBound, of: stream, reader)
    }
}

extension Writer {
    /// Returns an older database's unsettled records: pending, in a batch or in quarantine.
    fileprivate func unread(
        of database: Int64
    ) throws -> [(stream: Stream, range: ClosedRange<Int64>)] {
        let free = memory.older.filter { $0.key.database == database }
            .flatMap { partition, counters in
                counters.free().map { (stream: partition.stream, range: $0) }
            }
        let frozen = try batches("WHERE state<>1 AND database=?", database)
            .map { (stream: $0.stream, range: $0.first...$0.last) }
        return (free + frozen).sorted {
            ($0.stream.number, $0.range.lowerBound) < ($1.stream.number, $1.range.lowerBound)
        }
    }
}
