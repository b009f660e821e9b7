// A database that was set aside becomes a second, read-only queue: its records are uploaded from where they are.
import Host
import Records
import SQLite
import Synchronization

/// Takes each database that was set aside into the books of the live one, and finds out what can be read of it.
///
/// Its records keep their rows and ids; nothing of them is copied. First the books: which numbers it gave out,
/// and what is uploaded, in one transaction. Then every record that waits is read once; what cannot be read is
/// entered as lost. Then its streams are drained beside the live ones. A crash between two steps repeats
/// reading, nothing else.
struct Salvage: Sendable {
    /// Records that are read at once.
    private static let page: Int64 = 512

    /// Ranges that are to be read still.
    private struct Vetting: Sendable {
        var database: Int64
        /// Of its file.
        var name: String
        var ranges: [(stream: Stream, range: ClosedRange<Int64>)]
    }

    /// How often the disk may refuse in a row; a try is made each minute.
    private static let refusalLimit = 60

    private let core: QueueCore
    /// Of the live database: what was read while another took its place is not for that one.
    private let generation: Int
    private var vetting: Vetting?
    private(set) var refusals: Int
    private var patience: Patience { refusals < Self.refusalLimit ? .waits : .isOver }

    init(_ core: QueueCore, refusals: Int = 0) {
        self.core = core
        generation = core.generation.load(ordering: .acquiring)
        self.refusals = refusals
    }

    /// Does one step; false when all databases are done.
    ///
    /// Throws what the live database does, or the disk: it is tried again then.
    mutating func step() throws -> Bool {
        do {
            let hasMore = try next()
            refusals = 0
            return hasMore
        } catch let error as Refusal {
            refusals += 1
            throw error
        } catch let damage as LiveDatabaseDamaged {
            let found = Job.damaged(damage.why, generation: generation)
            _ = core.mailbox.post(found, urgent: true)
            throw damage
        }
    }

    private mutating func next() throws -> Bool {
        let settings = core.settings
        if let current = vetting, !DatabaseFile.isGone(current.name, settings) {
            return try vet(current)
        }
        vetting = nil
        let known = try perform { try $0.olderDatabases() }
        // Looked for here first: the writer's thread is not to list a folder for each.
        for older in known
        where older.state != .finished && DatabaseFile.isGone(older.name, settings) {
            if try perform({ try $0.giveUpIfGone(older.id) }) { return true }
        }
        // The newest first: it knows how far those before it were.
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
        let (core, generation) = (core, generation)
        return try core.perform { writer in
            guard core.generation.load(ordering: .acquiring) == generation else {
                throw QueueClosed()
            }
            return try body(writer)
        }
    }

    private func adopt(_ path: String, _ name: String) throws {
        let inheritance = try reading { try Inheritance(path, core.settings, patience) }
        let isSurveying = try perform { writer in
            try writer.adopt(inheritance, name: name)
            return writer.survey?.isOpen ?? false
        }
        if isSurveying { core.isSurveying.store(true, ordering: .relaxed) }
    }

    /// What the disk refuses of a database that was set aside; an error of the live one says nothing of it.
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
        let older = try OlderDatabase(current.database, core.settings)
        let lost = try reading {
            let reader = try patience.read { try Reader(core.settings, older: older, patience) }
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

    /// The parts of a range that cannot be read, halving it down to single records.
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
    /// What waits in an older database: in a batch, in quarantine, or in neither.
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
