// Reading the books: of the live database for who asks, of a damaged one for its salvage.
import Host
import Records
import SQLite

extension Reader {
    func batches(
        _ condition: String,
        _ streams: StreamList,
        _ memory: WriterMemory
    ) throws -> [Batch] {
        let rows = try query("\(Batch.columns) \(condition)")
        var batches: [Batch] = []
        while try rows.step() {
            if let batch = try Batch(rows, streams, memory.older) { batches.append(batch) }
        }
        return batches
    }

    /// How many records of a stream up to a number are frozen and not judged.
    func ready(_ stream: Stream, through end: Int64) throws -> Int64 {
        let rows = try query(
            """
            SELECT sum(min(last, \(end))-first+1) FROM batches
            WHERE state=0 AND database=0 AND stream=\(stream.number) AND first<=\(end)
            """
        )
        return try rows.step() ? rows.integer(0) ?? 0 : 0
    }

    /// The first record of a stream that is frozen and not judged.
    func firstReady(_ stream: Stream) throws -> Int64? {
        let rows = try query(
            "SELECT min(first) FROM batches WHERE state=0 AND database=0 AND stream=\(stream.number)"
        )
        return try rows.step() ? rows.integer(0) : nil
    }

    /// When a record was captured.
    func moment(of sequence: Int64, _ kind: StreamKind, _ map: ClockMap) throws -> WallTime? {
        let rows = try query("SELECT boot, boottime, wall FROM \(kind.table) WHERE id=\(sequence)")
        guard try rows.step() else { return nil }
        return map.resolve(rows.stamp(boottime: 1), boot: rows.required(0)).wall
    }

    func losses(_ streams: StreamList, _ map: ClockMap) throws -> [LossEntry] {
        try ledger(streams, map).map {
            LossEntry(
                stream: $0.stream,
                kind: $0.kind,
                records: Int($0.records),
                from: $0.first,
                to: $0.last
            )
        }
    }

    func traffic(_ today: Int64) throws -> [DayTraffic] {
        let rows = try query(
            "SELECT day, sent, received FROM traffic WHERE day>? AND day<=? ORDER BY day DESC"
        )
        try rows.bind(today - Writer.trafficDays, at: 1)
        try rows.bind(today, at: 2)
        var days: [DayTraffic] = []
        while try rows.step() {
            let (sent, received) = (rows.required(1), rows.required(2))
            guard sent.isPlausible, received.isPlausible else { continue }
            days.append(
                DayTraffic(day: rows.required(0), traffic: Traffic(sent: sent, received: received))
            )
        }
        return days
    }

    // MARK: Of a damaged database

    func boots() throws -> [Int64: String] {
        var boots: [Int64: String] = [:]
        let rows = try query("SELECT id, boot_id FROM boots")
        var ambiguous: Set<Int64> = []
        while try rows.step() {
            // A page that was written in part can hold a row twice: it dates nothing then.
            if boots.updateValue(rows.text(1), forKey: rows.required(0)) != nil {
                ambiguous.insert(rows.required(0))
            }
        }
        return boots.filter { !ambiguous.contains($0.key) }
    }

    func clockEntries() throws -> [ClockMap.Entry] {
        var entries: [ClockMap.Entry] = []
        let rows = try query(
            "SELECT id, boot, boottime, wall, synced, source FROM clock_map ORDER BY id"
        )
        while try rows.step() { entries.append(ClockMap.Entry(rows)) }
        return entries
    }

    /// The files of databases that it was draining itself.
    func olderFiles() throws -> [Int64: String] {
        var files: [Int64: String] = [:]
        let rows = try query("SELECT id, name FROM databases WHERE state<2")
        while try rows.step() { files[rows.required(0)] = rows.text(1) }
        return files
    }

    /// The files of databases whose salvage was reported, by it or by one before it.
    func reportedFiles() throws -> [String] {
        var files: [String] = []
        let rows = try query(
            """
            SELECT name FROM databases WHERE state=1
            UNION SELECT substr(name, 12) FROM memos WHERE name LIKE 'salvage of %'
            """
        )
        while try rows.step() { files.append(rows.text(0)) }
        return files
    }

    /// The files of databases of which it had nothing waiting any more.
    func finishedFiles() throws -> [String] {
        let rows = try query("SELECT name FROM databases WHERE state=2")
        var files: [String] = []
        while try rows.step() { files.append(DatabaseFile.name(rows.text(0))) }
        return files
    }

    /// Its streams, those of databases that it was draining included.
    func partitions() throws -> [Partition] {
        let rows = try query("SELECT database, stream, name FROM sequences")
        var found: [Partition] = []
        while try rows.step() {
            let stream = Stream(Int(rows.required(1)), rows.text(2))
            found.append(Partition(stream, of: rows.required(0)))
        }
        return found
    }

    /// The next number of a partition as it is stored; nil where none is.
    func storedNext(_ partition: Partition) throws -> Int64? {
        let rows = try query(
            """
            SELECT next FROM sequences
            WHERE database=\(partition.database) AND stream=\(partition.stream.number)
            """
        )
        guard try rows.step(), rows.required(0).isPlausible else { return nil }
        // Segments that are in no chunk yet are read as one chunk more.
        let isTail = partition == Partition(.audio) && hasTail
        return rows.required(0) + (isTail ? 1 : 0)
    }

    /// The next number of a partition by the mark beside the file; nil where there is no mark.
    func toldNext(_ partition: Partition) -> Int64? {
        guard let mark, partition.isLive else { return nil }
        // Known to have been there, whether it can be read or not.
        let isTail = partition == Partition(.audio) && !mark.tail.isEmpty
        return (mark.next[partition.stream.name] ?? 1) + (isTail ? 1 : 0)
    }

    /// The newest record that there is; nil where there is none.
    func newest(_ stream: Stream) throws -> Int64? {
        let kind = kind(of: stream)
        let rows = try query("SELECT max(id) FROM \(kind.table)")
        guard try rows.step(), rows.required(0).isPlausible else { return nil }
        return rows.integer(0)
    }

    /// Numbers that are uploaded, evicted or dropped.
    func settledRanges(_ partition: Partition) throws -> [ClosedRange<Int64>] {
        let key = "database=\(partition.database) AND stream=\(partition.stream.number)"
        return try ranges("SELECT first, last FROM gone WHERE \(key)")
            + ranges("SELECT first, last FROM batches WHERE state=1 AND \(key)")
    }

    private func ranges(_ sql: String) throws -> [ClosedRange<Int64>] {
        let rows = try query(sql)
        var ranges: [ClosedRange<Int64>] = []
        while try rows.step() {
            if let range = try? rows.recordRange(0) { ranges.append(range) }
        }
        return ranges
    }

    /// Batches that are frozen and not judged, or in quarantine.
    func openBatches(_ partition: Partition) throws -> [Batch] {
        let rows = try query(
            """
            \(Batch.columns) WHERE state IN (0,2) AND database=\(partition.database)
            AND stream=\(partition.stream.number) ORDER BY id
            """
        )
        var batches: [Batch] = []
        let known = [partition: StreamCounters()]
        while try rows.step() {
            // One that cannot be is left out, and its records wait again.
            guard let batch = try? Batch(rows, kinds, known),
                Int64(clamping: batch.clockMap.magnitude).isPlausible
            else { continue }
            batches.append(batch)
        }
        return batches
    }
}
