// Reads the bookkeeping of the live database, and of a damaged one for its salvage.
import Host
import Records
import SQLite

extension Reader {
    func batches(
        _ condition: String,
        _ streams: StreamList,
        _ memory: WriterMemory
    ) throws -> [Batch] {
        try query("\(Batch.columns) \(condition)")
            .compactMap { try Batch($0, streams, memory.older) }
    }

    /// Returns how many uploaded records are to be sent again, by stream number.
    func resending() throws -> [Int: Int] {
        let rows = try query(
            """
            SELECT stream, sum(last-first+1) FROM batches
            WHERE resend=1 AND state=1 AND database=0 GROUP BY stream
            """
        )
        var records: [Int: Int] = [:]
        while try rows.step() { records[Int(rows.required(0))] = Int(rows.required(1)) }
        return records
    }

    /// Returns how many records of a stream up to a number are frozen without a verdict.
    func ready(_ stream: Stream, through end: Int64) throws -> Int64 {
        let rows = try query(
            """
            SELECT sum(min(last, \(end))-first+1) FROM batches
            WHERE state=0 AND database=0 AND stream=\(stream.number) AND first<=\(end)
            """
        )
        return try rows.step() ? rows.integer(0) ?? 0 : 0
    }

    /// Returns the first record of a stream that is frozen without a verdict.
    func firstReady(_ stream: Stream) throws -> Int64? {
        let rows = try query(
            "SELECT min(first) FROM batches WHERE state=0 AND database=0 AND stream=\(stream.number)"
        )
        return try rows.step() ? rows.integer(0) : nil
    }

    /// Returns the bytes per day since the oldest record of a stream that is still there, by the size of the newest.
    ///
    /// Numbers also count records that were deleted since, so that one that stays for long changes nothing. 0 in the
    /// first hour.
    func bytesPerDay(_ kind: StreamKind, at now: WallTime, _ map: ClockMap) throws -> Double {
        let ends = try query(
            "SELECT (SELECT min(id) FROM \(kind.table)), (SELECT max(id) FROM \(kind.table))"
        )
        guard try ends.step(), let first = ends.integer(0), let last = ends.integer(1),
            let from = try moment(of: first, kind, map)
        else { return 0 }
        let days = Double(now.milliseconds &- from.milliseconds) / 86_400_000
        guard days >= 1 / 24 else { return 0 }
        let size = try query(
            """
            SELECT avg(\(kind.storedBytes)) FROM
            (SELECT * FROM \(kind.table) ORDER BY id DESC LIMIT 100)
            """
        )
        guard try size.step() else { return 0 }
        return Double(last - first + 1) * (size.number(0) ?? 0) / days
    }

    /// Returns when a record was captured.
    func moment(of sequence: Int64, _ kind: StreamKind, _ map: ClockMap) throws -> WallTime? {
        let rows = try query("SELECT boot, boottime, wall FROM \(kind.table) WHERE id=\(sequence)")
        guard try rows.step() else { return nil }
        return map.resolve(rows.stamp(boottime: 1), boot: rows.required(0)).wall
    }

    /// Returns when a chunk ended.
    func end(ofChunk sequence: Int64, _ map: ClockMap) throws -> WallTime? {
        let rows = try query(
            """
            SELECT c.boot, c.boottime, c.wall, c.frames*1000/max(1, r.rate)
            FROM chunks c JOIN runs r ON r.id=c.run WHERE c.id=\(sequence)
            """
        )
        guard try rows.step() else { return nil }
        let start = map.resolve(rows.stamp(boottime: 1), boot: rows.required(0)).wall
        return start + .milliseconds(rows.required(3))
    }

    /// Returns the chunks that were held; those of a database of a version without held sound are none.
    func heldRanges() throws -> [ClosedRange<Int64>] {
        guard try query("SELECT 1 FROM pragma_table_info('held')").step() else { return [] }
        // One that cannot be read may be any.
        return try query("SELECT first, last FROM held").compactMap { try $0.recordRange(0) }
    }

    func losses(_ streams: StreamList, _ map: ClockMap) throws -> [LossEntry] {
        try Ledger.rows(connection, streams, map).map {
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
        let first = today - Writer.trafficDays + 1
        return try traffic("WHERE day BETWEEN \(first) AND \(today) ORDER BY day DESC")
    }

    /// Reads the traffic of each stored day that meets a condition.
    func traffic(_ condition: String = "") throws -> [DayTraffic] {
        try query("SELECT day, sent, received FROM traffic \(condition)").compactMap { row in
            let (sent, received) = (row.required(1), row.required(2))
            guard sent.isPlausible, received.isPlausible else { return nil }
            return DayTraffic(
                day: row.required(0),
                traffic: Traffic(sent: sent, received: received)
            )
        }
    }

    // MARK: Of a damaged database

    func boots() throws -> [Int64: String] {
        var boots: [Int64: String] = [:]
        let rows = try query("SELECT id, boot_id FROM boots")
        var ambiguous: Set<Int64> = []
        while try rows.step() {
            // A partly written page can hold a row twice: such a boot cannot date anything.
            if boots.updateValue(rows.text(1), forKey: rows.required(0)) != nil {
                ambiguous.insert(rows.required(0))
            }
        }
        return boots.filter { !ambiguous.contains($0.key) }
    }

    /// Returns the files of databases that it was draining.
    func olderFiles() throws -> [Int64: String] {
        var files: [Int64: String] = [:]
        let rows = try query("SELECT id, name FROM databases WHERE state<2")
        while try rows.step() { files[rows.required(0)] = rows.text(1) }
        return files
    }

    /// Returns the files of databases whose salvage it or an earlier database reported.
    func reportedFiles() throws -> [String] {
        try query(
            """
            SELECT name FROM databases WHERE state=1
            UNION SELECT substr(name, 12) FROM memos WHERE name LIKE 'salvage of %'
            """
        ).compactMap { $0.text(0) }
    }

    /// Returns the files of fully drained databases.
    func finishedFiles() throws -> [String] {
        try query("SELECT name FROM databases WHERE state=2")
            .compactMap { DatabaseFile.name($0.text(0)) }
    }

    /// Returns its streams, including those of databases that it was draining.
    func partitions() throws -> [Partition] {
        try query("SELECT database, stream, name FROM sequences").compactMap {
            Partition(Stream(Int($0.required(1)), $0.text(2)), of: $0.required(0))
        }
    }

    /// Returns the stored next number of a partition; nil if there is none.
    func storedNext(_ partition: Partition) throws -> Int64? {
        let rows = try query(
            """
            SELECT next FROM sequences
            WHERE database=\(partition.database) AND stream=\(partition.stream.number)
            """
        )
        guard try rows.step(), rows.required(0).isPlausible else { return nil }
        // Segments not in a chunk yet are read as one more chunk.
        let isTail = partition == Partition(.audio) && hasTail
        return rows.required(0) + (isTail ? 1 : 0)
    }

    /// Returns a partition's next number by the commit mark; nil without a mark.
    func reportedNext(_ partition: Partition) -> Int64? {
        guard let mark, partition.isLive else { return nil }
        // The tail existed, whether it can be read or not.
        let isTail = partition == Partition(.audio) && !mark.tail.isEmpty
        return (mark.next[partition.stream.name] ?? 1) + (isTail ? 1 : 0)
    }

    /// Returns the newest existing record; nil if there are none.
    func newest(_ stream: Stream) throws -> Int64? {
        let kind = kind(of: stream)
        let rows = try query("SELECT max(id) FROM \(kind.table)")
        guard try rows.step(), rows.required(0).isPlausible else { return nil }
        return rows.integer(0)
    }

    /// Returns the numbers that are uploaded, evicted or dropped.
    func settledRanges(_ partition: Partition) throws -> [ClosedRange<Int64>] {
        let key = "database=\(partition.database) AND stream=\(partition.stream.number)"
        return try ranges("SELECT first, last FROM gone WHERE \(key)")
            + ranges("SELECT first, last FROM batches WHERE state=1 AND \(key)")
    }

    private func ranges(_ sql: String) throws -> [ClosedRange<Int64>] {
        try query(sql).compactMap { try? $0.recordRange(0) }
    }

    /// Returns batches that are frozen without a verdict, or in quarantine.
    func openBatches(_ partition: Partition) throws -> [Batch] {
        // A database that an older version quarantined has rows alone.
        let form = "SELECT 1 FROM pragma_table_info('batches') WHERE name='form'"
        let columns =
            try query(form).step()
            ? Batch.columns : Batch.columns.replacing(text: ", form", with: ", 0")
        let rows = try query(
            """
            \(columns) WHERE state IN (0,2) AND database=\(partition.database)
            AND stream=\(partition.stream.number) ORDER BY id
            """
        )
        let known = [partition: StreamCounters()]
        return try rows.compactMap { row in
            // Skip an impossible batch: its records become pending again.
            guard let batch = try? Batch(row, kinds, known),
                Int64(clamping: batch.clockMap.magnitude).isPlausible
            else { return nil }
            return batch
        }
    }
}
