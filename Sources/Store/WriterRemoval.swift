// The writer's part for deleting records: purged after their retention, or evicted for want of space.
internal import Host

extension Writer {
    /// Deletes at most `limit` records that were uploaded at least `retention` ago; returns how many.
    ///
    /// Age counts on the boot's own clock alone, so a wrong wall clock deletes nothing. Time that passed
    /// with the power off is not known and not counted.
    package func purge(_ stream: Stream, retention: Duration, limit: Int64 = 2000) throws -> Int {
        let id = Int64(stream.rawValue)
        let oldest = try done("state=1 AND stream=? ORDER BY first LIMIT 1", id)
        guard let oldest, try isOlder(oldest, than: retention) else { return 0 }
        return try removeFront(of: oldest, limit: limit)
    }

    /// Deletes some of what was uploaded longest ago; false when there is nothing.
    func evictUploaded() throws -> Bool {
        guard let oldest = try done("state=1 ORDER BY done_boot, done_boottime LIMIT 1") else {
            return false
        }
        _ = try removeFront(of: oldest, limit: oldest.stream.step(evictionBytes))
        return true
    }

    /// Deletes some of the oldest batch in quarantine; false when there is none.
    func evictQuarantined() throws -> Bool {
        guard let oldest = try done("state=2 ORDER BY id LIMIT 1") else { return false }
        let last = end(of: oldest, limit: oldest.stream.step(evictionBytes))
        try countGone(oldest.stream, oldest.first...last, .evicted)
        counters[oldest.stream]?.quarantined -= last - oldest.first + 1
        _ = try removeFront(of: oldest, limit: oldest.stream.step(evictionBytes))
        return true
    }

    /// Deletes some of the oldest records that no batch has, of the stream that holds most bytes.
    ///
    /// False when no stream has any. What is frozen may be on its way to the server and stays.
    func evictPending() throws -> Bool {
        let waiting = Stream.allCases.filter { (counters[$0]?.waiting ?? 0) > 0 }
        guard let largest = waiting.max(by: { pendingBytes($0) < pendingBytes($1) }),
            let oldest = counters[largest].flatMap({ $0.frozen.oldest(upTo: $0.next - 1) })
        else { return false }
        let first = oldest.lowerBound
        let range = first...min(oldest.upperBound, first + largest.step(evictionBytes) - 1)
        try countGone(largest, range, .evicted)
        try remove(largest, range)
        counters[largest]?.frozen.insert(range)
        return true
    }

    /// A moment of a boot.
    typealias Moment = (boot: Int64, stamp: Stamp)

    /// Counts records as gone and enters them in the ledger; returns when the first and the last were captured.
    ///
    /// `isTold`: an event of its own tells of them.
    @discardableResult
    func countGone(
        _ stream: Stream,
        _ range: ClosedRange<Int64>,
        _ kind: LossKind,
        isTold: Bool = false
    ) throws -> (first: Moment, last: Moment) {
        try begin()
        let count = range.upperBound - range.lowerBound + 1
        let first = try capture(of: range.lowerBound, in: stream) ?? (boot, clock.stamp())
        let last = try capture(of: range.upperBound, in: stream) ?? first
        let loss = Loss(kind, stream, records: count, from: first.stamp, to: last.stamp)
        if isTold {
            try noteTold(loss, fromBoot: first.boot, toBoot: last.boot)
        } else {
            try note(loss, fromBoot: first.boot, toBoot: last.boot)
        }
        try connection.run(
            "UPDATE streams SET evicted=evicted+? WHERE id=?",
            count,
            Int64(stream.rawValue)
        )
        counters[stream]?.evicted += count
        return (first, last)
    }

    func capture(of sequence: Int64, in stream: Stream) throws -> Moment? {
        let row = try connection.prepare(
            "SELECT boot, boottime, wall FROM \(stream.table) WHERE id=?"
        )
        try row.bind(sequence, at: 1)
        guard try row.step() else { return nil }
        return (row.required(0), row.stamp(boottime: 1))
    }

    // MARK: Batches that are over

    private struct Done {
        var id: Int64
        var stream: Stream
        var first: Int64
        var last: Int64
        var boot: Int64
        var boottime: Int64
    }

    private func done(_ condition: String, _ value: Int64? = nil) throws -> Done? {
        let row = try connection.prepare(
            "SELECT id, stream, first, last, done_boot, done_boottime FROM batches WHERE \(condition)"
        )
        if let value { try row.bind(value, at: 1) }
        guard try row.step(), let stream = Stream(rawValue: Int(row.required(1))) else {
            return nil
        }
        return Done(
            id: row.required(0),
            stream: stream,
            first: row.required(2),
            last: row.required(3),
            boot: row.required(4),
            boottime: row.required(5)
        )
    }

    private func isOlder(_ done: Done, than retention: Duration) throws -> Bool {
        let now = clock.now().milliseconds
        if done.boot == boot { return now - done.boottime >= retention.milliseconds }
        let ended =
            try connection.integer("SELECT max(boottime) FROM clock_map WHERE boot=?", done.boot)
            ?? 0
        return now + max(0, ended - done.boottime) >= retention.milliseconds
    }

    /// The last record of a batch that goes in one step.
    ///
    /// A batch with pending records below it goes as a whole: its rest could not be told from those.
    private func end(of batch: Done, limit: Int64) -> Int64 {
        isSettled(batch) ? min(batch.last, batch.first + limit - 1) : batch.last
    }

    private func isSettled(_ batch: Done) -> Bool {
        batch.last <= counters[batch.stream]?.frozen.through ?? 0
    }

    /// Deletes the first records of a batch, and the batch with its last.
    private func removeFront(of batch: Done, limit: Int64) throws -> Int {
        try begin()
        let through = end(of: batch, limit: limit)
        let deleted = try remove(batch.stream, batch.first...through)
        if !isSettled(batch) {
            // Stays as a mark that these numbers are not pending.
            try connection.run("UPDATE batches SET state=3 WHERE id=?", batch.id)
        } else if through == batch.last {
            try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        } else {
            try connection.run("UPDATE batches SET first=? WHERE id=?", through + 1, batch.id)
        }
        try connection.run(
            "DELETE FROM batches WHERE stream=? AND state=3 AND last<=?",
            Int64(batch.stream.rawValue),
            counters[batch.stream]?.frozen.through ?? 0
        )
        return deleted
    }

    // MARK: Rows

    /// Deletes the rows of a range and what only they needed; returns how many there were.
    ///
    /// Their numbers are never given out again.
    @discardableResult
    func remove(_ stream: Stream, _ range: ClosedRange<Int64>) throws -> Int {
        try begin()
        if stream == .audio { try removeSegments(ofChunks: range) }
        try connection.run(
            "DELETE FROM \(stream.table) WHERE id BETWEEN ? AND ?",
            range.lowerBound,
            range.upperBound
        )
        let deleted = connection.changes
        let id = Int64(stream.rawValue)
        // Never beyond what is settled: numbers below it are not pending, whatever became of their batches.
        let settled = counters[stream]?.frozen.through ?? 0
        if range.lowerBound <= settled + 1 {
            try connection.run(
                "UPDATE streams SET purged_through=max(purged_through, ?) WHERE id=?",
                range.upperBound,
                id
            )
        }
        try connection.run(
            """
            DELETE FROM origins WHERE stream=?1 AND
            last < ifnull((SELECT min(id) FROM \(stream.table)), ?2)
            """,
            id,
            range.upperBound + 1
        )
        if stream == .beacons {
            try connection.run(
                """
                DELETE FROM beacons WHERE
                last_sighting < ifnull((SELECT min(id) FROM sightings), ?)
                """,
                range.upperBound + 1
            )
        }
        return deleted
    }

    private func removeSegments(ofChunks range: ClosedRange<Int64>) throws {
        let runs = try connection.prepare(
            """
            SELECT run, min(first_segment), max(first_segment+segments-1) FROM chunks
            WHERE id BETWEEN ? AND ? GROUP BY run
            """
        )
        try runs.bind(range.lowerBound, at: 1)
        try runs.bind(range.upperBound, at: 2)
        while try runs.step() {
            try removeSegments(
                run: runs.required(0),
                runs.required(1)...max(runs.required(1), runs.required(2)),
                ofChunks: range
            )
        }
        // A run without chunks is over, unless it is the one being recorded.
        try connection.run(
            """
            DELETE FROM runs WHERE id<>?1 AND id<>(SELECT max(id) FROM runs)
            AND id NOT IN (SELECT run FROM chunks WHERE id NOT BETWEEN ?2 AND ?3)
            """,
            chunker.run?.id ?? 0,
            range.lowerBound,
            range.upperBound
        )
    }

    /// Deletes the segments of a run that no chunk but those of `chunks` needs.
    ///
    /// A chunk shares segments with its neighbours, and the one before its first is the pre-roll of its
    /// decoder: without it the bytes of a batch would change between two tries.
    func removeSegments(
        run: Int64,
        _ segments: ClosedRange<Int64>,
        ofChunks chunks: ClosedRange<Int64>
    ) throws {
        let before = try connection.integer(
            """
            SELECT first_segment+segments-1 FROM chunks WHERE run=? AND id<? ORDER BY id DESC LIMIT 1
            """,
            run,
            chunks.lowerBound
        )
        var after = try connection.integer(
            "SELECT first_segment FROM chunks WHERE run=? AND id>? ORDER BY id LIMIT 1",
            run,
            chunks.upperBound
        )
        if after == nil, chunker.run?.id == run {
            after = chunker.firstNeeded ?? segments.upperBound + 1
        }
        let first = max(segments.lowerBound - 1, before.map { $0 + 1 } ?? .min)
        let last = min(segments.upperBound, after.map { $0 - 2 } ?? .max)
        guard first <= last else { return }
        try connection.run(
            "DELETE FROM segments WHERE id BETWEEN ? AND ? AND run=?",
            first,
            last,
            run
        )
    }
}

extension Stream {
    /// Records that go in one step of an eviction of so many bytes.
    fileprivate func step(_ bytes: Int64) -> Int64 {
        self == .audio ? max(1, bytes / 65_536) : max(50, bytes / 64)
    }
}
