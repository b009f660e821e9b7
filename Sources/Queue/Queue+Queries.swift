// Queries that the queue answers without its writer, as of the last commit.
package import Host
package import Records
import SQLite

extension Queue {
    /// The existing streams, in upload order.
    package var streams: StreamList { counters.content.streams }

    /// Returns a stream's oldest, or newest, committed records that are not in a batch yet.
    ///
    /// Older databases come first; `unreadable` names those that are skipped for now. Of the live one, only numbers
    /// up to `end` count.
    package func pending(
        _ stream: Stream,
        newest: Bool = false,
        through end: Int64 = .max,
        unreadable: Set<Int64> = []
    ) -> PendingRange? {
        let memory = counters.memory
        let older = newest ? [] : memory.draining.subtracting(unreadable).sorted()
        for database in older + [0] {
            var counters = memory[Partition(stream, of: database)]
            if database == 0 { counters.next = min(counters.next - 1, end) + 1 }
            guard let range = newest ? counters.newestWaiting : counters.oldestWaiting else {
                continue
            }
            return PendingRange(
                stream: stream,
                first: range.lowerBound,
                last: range.upperBound,
                clockMap: memory.clockMap.newest,
                synced: memory.bootIsSynced,
                database: database
            )
        }
        return nil
    }

    /// The selection of sound that is uploaded.
    package var soundUpload: SoundUpload { settings.sound.value }

    /// Returns the sound that is to be sent next, at its end, while not all sound is uploaded: the newest that records
    /// have marked, else the newest; nil if none is pending up to `end`.
    package func wantedSound(through end: Int64) -> PendingRange? {
        let memory = counters.memory
        var marked = memory[Partition(.audio)].frozen
        for range in memory.asked.ranges { marked.insert(range) }
        let newest = min(memory[Partition(.audio)].next - 1, end)
        guard let last = marked.newest(upTo: newest) else {
            return pending(.audio, newest: true, through: end)
        }
        return PendingRange(
            stream: .audio,
            first: last.lowerBound,
            last: last.upperBound,
            clockMap: memory.clockMap.newest,
            synced: memory.bootIsSynced
        )
    }

    /// Returns the number of a stream's newest record; 0 if there is none.
    package func newest(_ stream: Stream) -> Int64 { counters.memory[Partition(stream)].next - 1 }

    /// Returns how many records of a stream, up to a number or in older databases, are not
    /// uploaded.
    package func unsent(_ stream: Stream, through end: Int64) throws -> Int {
        let memory = counters.memory
        let live = memory[Partition(stream)]
        var waiting = live.frozen.pending(upTo: end)
        for (partition, counters) in memory.older where partition.stream == stream {
            waiting += counters.waiting + counters.ready
        }
        guard live.ready > 0 else { return Int(waiting) }
        return try counters.ask { Int(waiting + (try $0.ready(stream, through: end))) }
    }

    // MARK: Batches

    /// Returns the frozen batch of a stream to send next: the one with the oldest records.
    ///
    /// Excludes rejected single-record batches (see `nextRefused`), and the rows in `except`.
    package func nextReady(
        _ stream: Stream,
        unreadable: Set<Int64> = [],
        except others: Set<Int64> = []
    ) throws -> Batch? {
        let list = others.map { "\($0)" }.joined(separator: ",")
        let condition = "NOT (attempts>0 AND first=last) AND id NOT IN (\(list))"
        return try ready(stream, condition, "ORDER BY database=0, database, first", unreadable)
    }

    /// Returns the next rejected single-record batch, numbered above `number`.
    package func nextRefused(
        _ stream: Stream,
        after number: Int64 = 0,
        unreadable: Set<Int64> = []
    ) throws -> Batch? {
        let condition = "attempts>0 AND first=last AND id>\(number)"
        return try ready(stream, condition, "ORDER BY id", unreadable)
    }

    /// Returns a stream's frozen batch without a verdict, older databases first.
    ///
    /// Includes an older database only once all its records were checked.
    private func ready(
        _ stream: Stream,
        _ condition: String,
        _ order: String,
        _ unreadable: Set<Int64>
    ) throws -> Batch? {
        let content = counters.content
        let memory = content.memory
        let isThere =
            memory[Partition(stream)].ready > 0
            || memory.older.contains { $0.key.stream == stream && $0.value.ready > 0 }
        guard isThere else { return nil }
        let older = memory.draining.subtracting(unreadable).sorted()
        let databases = ([0] + older).map { "\($0)" }.joined(separator: ",")
        let next =
            """
            WHERE state=0 AND stream=\(stream.number) AND database IN (\(databases))
            AND \(condition) \(order) LIMIT 1
            """
        return try counters.ask { try $0.batches(next, content.streams, memory).first }
    }

    /// Returns the next batch to send again, numbered above `number`; nil if there is none.
    package func nextResend(after number: Int64 = 0) throws -> Batch? {
        let content = counters.content
        guard content.isOpen else { return nil }
        let next = "WHERE resend=1 AND id>\(number) AND state=1 AND database=0 ORDER BY id LIMIT 1"
        return try counters.ask { try $0.batches(next, content.streams, content.memory).first }
    }

    // MARK: Statistics

    /// Returns statistics for `status`; empty until a database is open.
    ///
    /// Without `dated` they omit the oldest record's time, which is read from the database.
    package func statistics(dated: Bool = true) -> [StreamStatistics] {
        let content = counters.content
        guard content.isOpen else { return [] }
        let resending = dated ? resending : [:]
        return content.streams.kinds.map { kind in
            var figures = content.memory.statistics(kind)
            figures.resending = resending[kind.stream.number] ?? 0
            if dated { figures.oldestPendingAt = oldestPending(kind, content.memory) }
            if dated, figures.held > 0 { figures.heldSpan = heldSpan(kind, content.memory) }
            return figures
        }
    }

    /// Uploaded records that a person asked to send again and that were not sent yet, by stream number.
    package var resending: [Int: Int] { (try? counters.ask { try $0.resending() }) ?? [:] }

    private func oldestPending(_ kind: StreamKind, _ memory: WriterMemory) -> WallTime? {
        let live = memory[Partition(kind.stream)]
        guard live.ready + live.waiting > 0 else { return nil }
        return try? counters.ask { reader in
            let ready = try reader.firstReady(kind.stream)
            let first = [ready, live.oldestWaiting?.lowerBound].compactMap { $0 }.min()
            return try first.flatMap { try reader.moment(of: $0, kind, memory.clockMap) }
        }
    }

    private func heldSpan(_ kind: StreamKind, _ memory: WriterMemory) -> ClosedRange<WallTime>? {
        let held = memory.held.ranges
        guard let first = held.first?.lowerBound, let last = held.last?.upperBound else {
            return nil
        }
        return try? counters.ask { reader in
            let (from, to) = try (
                reader.moment(of: first, kind, memory.clockMap),
                reader.end(ofChunk: last, memory.clockMap)
            )
            return from.flatMap { from in to.map { from...max(from, $0) } }
        }
    }

    /// The bytes that all streams store per day, each since its oldest record that is still there; 0 while none has one
    /// that is an hour old, or without a right clock.
    package var bytesPerDay: Double {
        guard let now = rightTime(at: settings.clock.stamp()) else { return 0 }
        let content = counters.content
        return content.streams.kinds.reduce(0) { sum, kind in
            let rate = try? counters.ask {
                try $0.bytesPerDay(kind, at: now, content.memory.clockMap)
            }
            return sum + (rate ?? 0)
        }
    }

    /// Returns all losses so far.
    package func losses() throws -> [LossEntry] {
        let content = counters.content
        return try counters.ask { try $0.losses(content.streams, content.memory.clockMap) }
    }

    /// Returns the days of the last week with network traffic, newest first.
    package func traffic() throws -> [DayTraffic] {
        let today = today
        return try counters.ask { try $0.traffic(today) }
    }

    // MARK: Time

    /// The best known current day.
    package var today: Int64 {
        let now = settings.clock.stamp()
        return (rightTime(at: now) ?? now.wall).utcDay
    }

    /// Whether the clock has been synced during this boot.
    package var clockIsSynced: Bool { counters.memory.bootIsSynced }

    /// The newest clock map entry that corrected earlier ones.
    package var clockCorrection: Int64 { counters.memory.clockMap.correction }

    /// Returns the true time at a point of this boot; nil until a source has vouched for one.
    ///
    /// GNSS time does not set the system clock, and a clock set by hand may be wrong.
    package func rightTime(at stamp: Stamp) -> WallTime? {
        let content = counters.content
        let (wall, quality) = content.memory.clockMap.resolve(stamp, boot: content.boot)
        return quality == .unsynced ? nil : wall
    }

    // MARK: Quarantined databases

    /// Quarantined databases whose files still exist.
    package var setAside: [SetAside] {
        let memory = counters.memory
        return DatabaseFile.setAside(settings).map { path in
            let hasOtherTables = remembered(SetAside.tablesMemo(path)) != nil
            guard let id = memory.files[DatabaseFile.name(path)] else {
                return SetAside(path: path, waiting: nil, hasOtherTables: hasOtherTables)
            }
            let isKnown = memory.older.contains { $0.key.database == id }
            let isRead = !isKnown || memory.draining.contains(id)
            let waiting = isRead ? Int(memory.left(in: id)) : nil
            return SetAside(path: path, waiting: waiting, hasOtherTables: hasOtherTables)
        }
    }

    /// Checks for quarantined databases, and for those whose file was deleted.
    package func checkSetAside() { maintenance.salvage() }

    /// Returns a new reading connection for one thread; `database` selects a quarantined one.
    package func reader(of database: Int64 = 0) throws -> Reader {
        guard database > 0 else { return try Reader(settings) }
        let older = try OlderDatabase(database, settings)
        // Messages name its path, so a person may have deleted it.
        if !settings.disk.exists(older.path) {
            _ = try perform { try $0.giveUpIfGone(database) }
        }
        return try Reader(settings, older: older)
    }
}
