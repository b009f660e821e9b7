// Stores the sequence numbers and counters of streams, which are never recomputed from rows.
import Host
import Records
import SQLite

extension Writer {
    /// Declares the user's streams: a new one gets a number, a table and an entry in the list.
    ///
    /// A stream that is no longer declared stays, so that its pending records are still uploaded.
    ///
    /// `known` holds the numbers that streams had in an earlier database; kept if they are free.
    func declare(user declared: [DeclaredStream], numbers known: [String: Int] = [:]) throws {
        try begin()
        let stored = try userStreams()
        var numbers = stored.mapValues(\.number)
        for (name, number) in known where numbers[name] == nil && !numbers.values.contains(number) {
            numbers[name] = number
        }
        var last = max(Stream.firstOfUser - 1, numbers.values.max() ?? 0)
        for stream in declared where numbers[stream.name] == nil && last < Stream.last {
            last += 1
            numbers[stream.name] = last
        }
        let kinds = numbers.sorted { $0.value < $1.value }.map { name, number in
            let wire = declared.first { $0.name == name }?.wire
            return StreamKind.user(number, name, wire: wire ?? stored[name]?.wire ?? name)
        }
        streams = StreamList(with: settings.moreStreams + kinds)
        for kind in streams.kinds {
            try plainTables.make(kind, connection)
            guard memory.live[kind.stream] == nil else { continue }
            try insertSequence(Partition(kind.stream))
            memory[Partition(kind.stream)] = try loadCounters(Partition(kind.stream))
            try checkNext(kind)
        }
        for kind in kinds where stored[kind.stream.name]?.wire != kind.wire {
            // For pending records, even once it is no longer declared.
            let update = "UPDATE sequences SET wire=? WHERE database=0 AND stream=?"
            try connection.run(update, kind.wire, kind.stream.number)
        }
    }

    /// Throws damage if the next number already exists, or if a pending record is missing.
    ///
    /// Either means that one part of the database is older than the rest.
    private func checkNext(_ kind: StreamKind) throws {
        let newest = try connection.integer("SELECT max(id) FROM \(kind.table)") ?? 0
        let counters = memory[Partition(kind.stream)]
        let waiting = counters.newestWaiting?.upperBound ?? 0
        try requireIntact(
            newest < counters.next && waiting <= newest,
            "\(kind.stream): the newest record is \(newest), but \(waiting) is pending "
                + "and \(counters.next) is next"
        )
    }

    /// Throws damage for rows that Waypost never writes; SQLite's own check ignores values.
    func checkBooks() throws {
        let wrong = try connection.integer(
            """
            SELECT EXISTS (SELECT 1 FROM gone WHERE first>last) OR EXISTS (SELECT 1 FROM batches
            WHERE first>last OR state NOT BETWEEN 0 AND 2
            OR clock_map>(SELECT ifnull(max(id), 0) FROM clock_map)
            OR database NOT IN (SELECT database FROM sequences)) OR EXISTS (SELECT 1 FROM losses
            WHERE records NOT BETWEEN 0 AND 1<<40 OR told NOT BETWEEN 0 AND records)
            """
        )
        try requireIntact(wrong == 0, "impossible rows in the bookkeeping")
    }

    /// Returns the user streams that this database knows, by name, still declared or not.
    private func userStreams() throws -> [String: (number: Int, wire: String?)] {
        let rows = try connection.prepare(
            "SELECT name, stream, wire FROM sequences WHERE database=0 AND stream>=?",
            Stream.firstOfUser
        )
        var found: [String: (number: Int, wire: String?)] = [:]
        while try rows.step() {
            let wire = rows.text(2)
            try check(Stream(Int(rows.required(1)), rows.text(0)))
            found[rows.text(0)] = (Int(rows.required(1)), wire.isEmpty ? nil : wire)
        }
        for kind in settings.moreStreams { found[kind.stream.name] = nil }
        return found
    }

    func insertSequence(_ partition: Partition) throws {
        let insert = "INSERT OR IGNORE INTO sequences(database, stream, name) VALUES (?,?,?)"
        let stream = partition.stream
        try connection.run(insert, partition.database, stream.number, stream.name)
    }

    func loadNumbers() throws -> RowNumbers {
        var numbers = RowNumbers()
        let rows = try connection.prepare("SELECT name, next FROM numbers")
        while try rows.step() {
            let name = rows.text(0)
            for (known, path) in RowNumbers.names where known == name {
                numbers[keyPath: path] = try rows.required(1).checked("the number of \(name)")
            }
        }
        return numbers
    }

    /// Loads the counters of quarantined databases that are not drained yet.
    func loadOlder() throws -> [Partition: StreamCounters] {
        let rows = try connection.prepare(
            "SELECT database, stream, name FROM sequences WHERE database>0"
        )
        let partitions = try rows.compactMap { row in
            let stream = Stream(Int(row.required(1)), row.text(2))
            try check(stream)
            return Partition(stream, of: row.required(0))
        }
        // Keys are not unique in a damaged table.
        return try Dictionary(partitions.map { ($0, try loadCounters($0)) }) { first, _ in first }
    }

    func loadCounters(_ partition: Partition) throws -> StreamCounters {
        var counters = StreamCounters()
        let row = try connection.prepare(
            """
            SELECT next, uploaded, evicted, not_kept, seeded, pending_bytes FROM sequences
            WHERE database=? AND stream=?
            """,
            partition.database,
            partition.stream.number
        )
        guard try row.step() else { return counters }
        counters.next = try row.required(0).checked("the next number")
        counters.uploaded = try row.required(1).checked("the uploaded count")
        counters.evicted = try row.required(2).checked("the evicted count")
        counters.notKept = try row.required(3).checked("the count of chunks not kept")
        counters.seeded = try row.required(4).checked("the start of ids")
        counters.pendingBytes = try row.required(5).checked("the bytes that are pending")
        counters.frozen = FrozenRanges(through: 0, try settledRanges(partition))
        // Future records would get these numbers and would never be sent.
        try requireIntact(
            counters.frozen.last < counters.next,
            "\(partition.stream): record \(counters.frozen.last) is settled but was never assigned"
        )
        counters.ready = try sum(partition, .ready)
        counters.quarantined = try sum(partition, .quarantined)
        return counters
    }

    private func sum(_ partition: Partition, _ state: Batch.State) throws -> Int64 {
        try connection.integer(
            "SELECT sum(last-first+1) FROM batches WHERE state=? AND database=? AND stream=?",
            state.rawValue,
            partition.database,
            partition.stream.number
        ) ?? 0
    }

    private func settledRanges(_ partition: Partition) throws -> [ClosedRange<Int64>] {
        let rows = try connection.prepare(
            """
            SELECT first, last FROM gone WHERE database=?1 AND stream=?2
            UNION ALL SELECT first, last FROM batches WHERE database=?1 AND stream=?2
            """,
            partition.database,
            partition.stream.number
        )
        return try rows.compactMap { row in
            let (first, last) = (row.required(0), row.required(1))
            guard first <= last else { return nil }
            return try first.checked("the first of a range")...last.checked("its last")
        }
    }

    /// Stores every number that differs from `before`; part of each commit.
    func storeNumbers(since before: WriterMemory) throws {
        for stream in streams.streams {
            // Rows lost to damage were not subtracted.
            if memory[Partition(stream)].holdsNothing { memory[Partition(stream)].pendingBytes = 0 }
            try store(Partition(stream), memory.live[stream], before.live[stream])
        }
        checkSums(since: before)
        if !memory.older.isEmpty {
            for (partition, counters) in memory.older {
                try store(partition, counters, before.older[partition])
            }
        }
        try storeHeld(since: before)
        guard memory.numbers != before.numbers else { return }
        for (name, path) in RowNumbers.names
        where memory.numbers[keyPath: path] != before.numbers[keyPath: path] {
            let next = memory.numbers[keyPath: path]
            mustHold(
                path == \.heldBytes || next > before.numbers[keyPath: path],
                "no row number is assigned twice"
            )
            try connection.run("UPDATE numbers SET next=? WHERE name=?", next, name)
        }
    }

    private func store(
        _ partition: Partition,
        _ counters: StreamCounters?,
        _ before: StreamCounters?
    ) throws {
        guard let counters, before.map({ !counters.isStored(as: $0) }) ?? true else { return }
        mustHold(counters.next >= before?.next ?? 1, "no record number is assigned twice")
        mustHold(counters.frozen.last < counters.next, "what is settled was assigned")
        invariant(counters.pendingBytes >= 0, "pending records have bytes")
        invariant(
            counters.uploaded >= before?.uploaded ?? 0 && counters.evicted >= before?.evicted ?? 0
                && counters.notKept >= before?.notKept ?? 0,
            "totals do not fall"
        )
        try connection.run(
            """
            UPDATE sequences SET next=?, uploaded=?, evicted=?, not_kept=?, seeded=?,
            pending_bytes=? WHERE database=? AND stream=?
            """,
            counters.next,
            counters.uploaded,
            counters.evicted,
            counters.notKept,
            counters.seeded,
            counters.pendingBytes,
            partition.database,
            partition.stream.number
        )
    }

    /// Checks that each record of a stream is in one of its sums (invariant 7).
    ///
    /// Not while older databases come or go: a drained one gives the live one its sums, but not its numbers.
    private func checkSums(since before: WriterMemory) {
        guard memory.older.count == before.older.count,
            memory.numbers.databases == before.numbers.databases
        else { return }
        for stream in streams.streams {
            guard let now = memory.live[stream], let then = before.live[stream] else { continue }
            invariant(now.ready >= 0 && now.quarantined >= 0, "batches have records")
            invariant(
                now.uncounted - Int64(memory.heldCount(stream))
                    == then.uncounted - Int64(before.heldCount(stream)),
                "a record is in one sum of its stream"
            )
        }
    }

    /// Stores that ids use this process's random number from the stream's next record on.
    func storeSeed(_ stream: Stream) throws {
        try begin()
        let next = memory[Partition(stream)].next
        let insert = "INSERT OR REPLACE INTO id_seeds VALUES (?,?,?)"
        try connection.run(insert, stream.number, next, seed)
        memory[Partition(stream)].seeded = next
        memory[Partition(stream)].hasSeed = true
    }

    // MARK: Settled numbers

    /// Records that a range is settled and in no batch; merges it with adjacent ranges.
    func settle(_ partition: Partition, _ range: ClosedRange<Int64>) throws {
        try requireIntact(
            range.upperBound < memory[partition].next,
            "\(partition.stream): record \(range.upperBound) was never assigned"
        )
        try begin()
        let key = (partition.database, partition.stream.number)
        var (first, last) = (range.lowerBound, range.upperBound)
        let before = try connection.prepare(
            """
            SELECT first, last FROM gone WHERE database=? AND stream=? AND first<=?
            ORDER BY first DESC LIMIT 1
            """,
            key.0,
            key.1,
            first
        )
        if try before.step(), before.required(1) >= first - 1 {
            first = before.required(0)
            last = max(last, before.required(1))
        }
        before.reset()
        let after = try connection.integer(
            "SELECT last FROM gone WHERE database=? AND stream=? AND first=?",
            key.0,
            key.1,
            last + 1
        )
        if let after {
            let delete = "DELETE FROM gone WHERE database=? AND stream=? AND first=?"
            try connection.run(delete, key.0, key.1, last + 1)
            last = after
        }
        try requireIntact(
            first <= range.lowerBound && last >= range.upperBound,
            "\(partition.stream): settled ranges are out of order"
        )
        let insert = "INSERT OR REPLACE INTO gone VALUES (?,?,?,?)"
        try connection.run(insert, key.0, key.1, first, last)
        memory[partition].frozen.insert(range)
    }
}
