// Answers queries about the queue without its writer, as of the last commit.
import Host
import Records
import SQLite
import Synchronization

/// A copy of the writer's memory as of its last commit, and a reading connection for the rest.
final class QueueCounters: Sendable {
    private struct Content {
        var memory = WriterMemory()
        /// The current boot.
        var boot: Int64 = 0
        var streams: StreamList
        var isOpen = false
    }

    private let content: Mutex<Content>
    private let reader: Mutex<ReaderBox>
    private let settings: QueueSettings

    private struct ReaderBox: Sendable {
        // Used by one thread at a time: the one that holds the lock.
        nonisolated(unsafe) var reader: Reader?
    }

    init(_ settings: QueueSettings) {
        self.settings = settings
        content = Mutex(Content(streams: StreamList(with: settings.moreStreams)))
        reader = Mutex(ReaderBox())
    }

    // MARK: The writer's side

    func opened(_ writer: Writer) {
        reader.withLock { $0.reader = nil }
        content.withLock { $0.isOpen = true }
        committed(writer)
    }

    /// Called after each commit.
    func committed(_ writer: Writer) {
        let (memory, boot, streams) = (writer.committed, writer.boot, writer.streams)
        content.withLock {
            $0.memory = memory
            $0.boot = boot
            $0.streams = streams
        }
    }

    func closed() { reader.withLock { $0.reader = nil } }

    // MARK: Queries

    var streams: StreamList { content.withLock { $0.streams } }
    /// Numbers of user streams, kept in a new database because records in memory use them.
    var userNumbers: [String: Int] {
        let own = streams.kinds.filter { $0.isOfUser }.map { ($0.stream.name, $0.stream.number) }
        return Dictionary(own, uniquingKeysWith: { first, _ in first })
    }
    var memory: WriterMemory { content.withLock { $0.memory } }

    /// Returns the true time at a point of this boot; nil until a source has vouched for one.
    func rightTime(at stamp: Stamp) -> WallTime? {
        let (map, boot) = content.withLock { ($0.memory.clockMap, $0.boot) }
        let (wall, quality) = map.resolve(stamp, boot: boot)
        return quality == .unsynced ? nil : wall
    }

    /// Returns a stream's oldest unbatched records, older databases first; or the newest.
    func pending(_ stream: Stream, newest: Bool, unreadable: Set<Int64>) -> PendingRange? {
        content.withLock { content in
            let draining = content.memory.draining.subtracting(unreadable)
            let older = newest ? [] : draining.sorted()
            for database in older + [0] {
                let partition = Partition(stream, of: database)
                let counters = content.memory[partition]
                guard let range = newest ? counters.newestWaiting : counters.oldestWaiting else {
                    continue
                }
                return PendingRange(
                    stream: stream,
                    first: range.lowerBound,
                    last: range.upperBound,
                    clockMap: content.memory.clockMap.newest,
                    synced: content.memory.bootIsSynced,
                    database: database
                )
            }
            return nil
        }
    }

    /// Returns the number of a stream's newest record; 0 if there is none.
    func newest(_ stream: Stream) -> Int64 { memory[Partition(stream)].next - 1 }

    /// Returns how many records of a stream up to a number, and of older databases, are pending.
    func unsent(_ stream: Stream, through end: Int64) throws -> Int {
        let memory = memory
        let live = memory[Partition(stream)]
        var waiting = live.frozen.pending(upTo: end)
        for (partition, counters) in memory.older where partition.stream == stream {
            waiting += counters.waiting + counters.ready
        }
        guard live.ready > 0 else { return Int(waiting) }
        return try ask { Int(waiting + (try $0.ready(stream, through: end))) }
    }

    /// Returns a stream's frozen batch without a verdict, older databases first.
    ///
    /// Includes an older database only once all its records were checked.
    func ready(
        _ stream: Stream,
        _ condition: String,
        _ order: String,
        _ unreadable: Set<Int64>
    ) throws -> Batch? {
        let (memory, streams) = content.withLock { ($0.memory, $0.streams) }
        let isThere =
            memory[Partition(stream)].ready > 0
            || memory.older.contains { $0.key.stream == stream && $0.value.ready > 0 }
        guard isThere else { return nil }
        let older = memory.draining.subtracting(unreadable).sorted()
        let databases = ([0] + older).map { "\($0)" }.joined(separator: ",")
        return try ask { reader in
            try reader.batches(
                """
                WHERE state=0 AND stream=\(stream.number) AND database IN (\(databases))
                AND \(condition) \(order) LIMIT 1
                """,
                streams,
                memory
            ).first
        }
    }

    /// Returns the next uploaded batch to send again, numbered above `number`.
    func nextResend(after number: Int64) throws -> Batch? {
        let (memory, streams, isOpen) = content.withLock { ($0.memory, $0.streams, $0.isOpen) }
        guard isOpen else { return nil }
        let next = "WHERE resend=1 AND id>\(number) AND state=1 AND database=0 ORDER BY id LIMIT 1"
        return try ask { try $0.batches(next, streams, memory).first }
    }

    func statistics(dated: Bool) -> [StreamStatistics] {
        let (memory, streams, isOpen) = content.withLock { ($0.memory, $0.streams, $0.isOpen) }
        guard isOpen else { return [] }
        return streams.kinds.map { kind in
            var figures = memory.statistics(kind)
            if dated { figures.oldestPendingAt = oldestPending(kind, memory) }
            return figures
        }
    }

    private func oldestPending(_ kind: StreamKind, _ memory: WriterMemory) -> WallTime? {
        let counters = memory[Partition(kind.stream)]
        guard counters.ready + counters.waiting > 0 else { return nil }
        return try? ask { reader in
            let ready = try reader.firstReady(kind.stream)
            let first = [ready, counters.oldestWaiting?.lowerBound].compactMap { $0 }.min()
            return try first.flatMap { try reader.moment(of: $0, kind, memory.clockMap) }
        }
    }

    func losses() throws -> [LossEntry] {
        let (memory, streams) = content.withLock { ($0.memory, $0.streams) }
        return try ask { try $0.losses(streams, memory.clockMap) }
    }

    func traffic(_ today: Int64) throws -> [DayTraffic] { try ask { try $0.traffic(today) } }

    private func ask<Value>(_ body: (Reader) throws -> Value) throws -> Value {
        try reader.withLock { box in
            let reader = try box.reader ?? Reader(settings)
            box.reader = reader
            do {
                return try body(reader)
            } catch {
                // The file may have been replaced: reopen it next time.
                box.reader = nil
                throw error
            }
        }
    }
}
