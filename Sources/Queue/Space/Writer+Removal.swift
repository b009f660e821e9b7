// Deletes records: purged after their retention, or evicted for lack of space.
import Host
import Records
import SQLite

extension Writer {
    /// Purges some records past their retention, in one transaction; returns false if none are due.
    ///
    /// Age is measured by the boot clock alone, so a wrong wall clock deletes nothing. Time with
    /// the power off is unknown and does not count.
    func purge(retention: Duration, limit: Int64 = 2000) throws -> Bool {
        for kind in streams.kinds {
            // An open survey still needs its sightings; batches to resend stay until sent.
            guard
                let oldest = try oldestUploaded(kind.stream, sparing: survey?.first, purges: true),
                try isOlder(oldest, than: retention)
            else { continue }
            try recordDeleted(kind.stream, boot: oldest.boot, boottime: oldest.boottime)
            try removeFront(of: oldest, through: min(oldest.last, oldest.first + limit - 1))
            return true
        }
        return false
    }

    /// Evicts some of the records uploaded longest ago; returns false if there are none.
    func evictUploaded() throws -> Bool {
        // Evict a survey's sightings after all other uploaded records.
        guard let oldest = try oldestUploaded(sparing: survey?.first) ?? oldestUploaded() else {
            return false
        }
        try recordDeleted(oldest.stream, boot: oldest.boot, boottime: oldest.boottime)
        try removeFront(of: oldest, through: try step(oldest.partition, oldest.range))
        return true
    }

    /// Whether there are uploaded records to evict.
    func hasUploaded() throws -> Bool { try oldestUploaded() != nil }

    /// Queries per stream, to use the index: otherwise each step would sort all uploaded batches.
    private func oldestUploaded(sparing pin: Int64? = nil) throws -> Done? {
        try streams.streams.compactMap { try oldestUploaded($0, sparing: pin) }
            .min { ($0.boot, $0.boottime) < ($1.boot, $1.boottime) }
    }

    /// Returns a stream's batch uploaded longest ago, without sightings from `pin` on.
    ///
    /// `purges` also excludes batches marked for resending.
    private func oldestUploaded(
        _ stream: Stream,
        sparing pin: Int64?,
        purges: Bool = false
    ) throws -> Done? {
        try done(
            """
            state=1 AND database=0 AND stream=? AND last<? AND resend<=?
            ORDER BY done_boot, done_boottime LIMIT 1
            """,
            Int64(stream.number),
            stream == .beacons ? pin ?? .max : .max,
            purges ? 0 : 1
        )
    }

    /// Evicts part of the oldest batch in quarantine; returns false if there is none.
    func evictQuarantined() throws -> Bool {
        guard let oldest = try done("state=2 AND database=0 ORDER BY id LIMIT 1") else {
            return false
        }
        let last = try step(oldest.partition, oldest.range)
        try countGone(oldest.partition, oldest.first...last, .evicted)
        memory[oldest.partition].quarantined -= last - oldest.first + 1
        try removeFront(of: oldest, through: last)
        return true
    }

    /// Evicts some of the oldest unbatched records of the stream with the most bytes.
    ///
    /// Returns false if there are none. Frozen records may be on their way to the server and stay.
    func evictPending() throws -> Bool {
        let waiting = streams.streams.map { Partition($0) }.filter { memory[$0].waiting > 0 }
        let largest = waiting.max { memory[$0].pendingBytes < memory[$1].pendingBytes }
        guard let largest, let oldest = memory[largest].oldestWaiting else { return false }
        let range = oldest.lowerBound...(try step(largest, oldest))
        mustHold(memory[largest].frozen.isPending(range), "no record of a batch is evicted")
        try countGone(largest, range, .evicted)
        try subtractPending(largest, range)
        try remove(largest, range)
        return true
    }

    /// Returns the last record of an eviction step, which starts with the first record of `range`.
    ///
    /// Adds up the rows' real sizes; the step ends with the record that reaches `evictionBytes`.
    func step(_ partition: Partition, _ range: ClosedRange<Int64>) throws -> Int64 {
        guard let kind = streams[partition.stream] else { return range.upperBound }
        let rows = try connection.prepare(
            "SELECT id, \(kind.storedBytes) FROM \(kind.table) WHERE id BETWEEN ? AND ? ORDER BY id",
            range.lowerBound,
            range.upperBound
        )
        var bytes: Int64 = 0
        while try rows.step() {
            bytes += rows.required(1)
            guard bytes >= evictionBytes else { continue }
            // A damaged tree may lead elsewhere.
            try requireIntact(range.contains(rows.required(0)), "\(kind.table) is out of order")
            return rows.required(0)
        }
        return range.upperBound
    }

    /// A point in time of a boot.
    typealias Moment = (boot: Int64, stamp: Stamp)

    /// Records a range as lost; returns when its first and last records were captured.
    ///
    /// `isReported` means that a separate event reports them.
    @discardableResult
    func countGone(
        _ partition: Partition,
        _ range: ClosedRange<Int64>,
        _ kind: LossKind,
        isReported: Bool = false
    ) throws -> (first: Moment, last: Moment) {
        try requireIntact(
            range.upperBound < memory[partition].next,
            "\(partition.stream): record \(range.upperBound) is lost and was never assigned"
        )
        try begin()
        let count = range.upperBound - range.lowerBound + 1
        let first = try capture(of: range.lowerBound, in: partition) ?? (boot, clock.stamp())
        let last = try capture(of: range.upperBound, in: partition) ?? first
        let loss = Loss(kind, partition.stream, records: count, from: first.stamp, to: last.stamp)
        if isReported {
            try recordReported(loss, fromBoot: first.boot, toBoot: last.boot)
        } else {
            try record(loss, fromBoot: first.boot, toBoot: last.boot)
        }
        memory[partition].evicted += count
        try forgetOverlap(after: range.upperBound, in: partition)
        return (first, last)
    }

    /// Makes the chunk after a lost one share nothing with it, unless its batch was sent already.
    func forgetOverlap(after chunk: Int64, in partition: Partition) throws {
        guard partition == Partition(.audio) else { return }
        guard chunk == memory[partition].next - 1 else {
            return try connection.run(
                """
                UPDATE chunks SET overlap_frames=0 WHERE id=?1 AND NOT EXISTS (SELECT 1 FROM batches
                WHERE state<2 AND database=0 AND stream=?2 AND ?1 BETWEEN first AND last)
                """,
                chunk + 1,
                partition.stream.number
            )
        }
        guard let run = chunker.run, let first = chunker.firstNeeded else { return }
        chunker.leaveOut()
        // For a start after a crash, which makes a chunk of the rest.
        let update = "UPDATE runs SET chunked=?, overlap_segments=0 WHERE id=?"
        try connection.run(update, first - 1, run.id)
    }

    /// Returns when a record was captured; nil if its row is missing or in another database.
    func capture(of sequence: Int64, in partition: Partition) throws -> Moment? {
        guard partition.isLive, let kind = streams[partition.stream] else { return nil }
        let sql = "SELECT boot, boottime, wall FROM \(kind.table) WHERE id=?"
        let row = try connection.prepare(sql, sequence)
        guard try row.step() else { return nil }
        return (row.required(0), row.stamp(boottime: 1))
    }

    // MARK: Settled batches

    private struct Done {
        var id: Int64
        var stream: Stream
        var first: Int64
        var last: Int64
        var boot: Int64
        var boottime: Int64

        var partition: Partition { Partition(stream) }
        var range: ClosedRange<Int64> { first...last }
    }

    private func done(_ condition: String, _ values: Int64...) throws -> Done? {
        let row = try connection.prepare(
            "SELECT id, stream, first, last, done_boot, done_boottime FROM batches WHERE \(condition)"
        )
        try row.bind(values, from: 1)
        guard try row.step(), let stream = streams[number: Int(row.required(1))]?.stream else {
            return nil
        }
        let range = try row.recordRange(2)
        return Done(
            id: row.required(0),
            stream: stream,
            first: range.lowerBound,
            last: range.upperBound,
            boot: row.required(4),
            boottime: row.required(5)
        )
    }

    private func isOlder(_ done: Done, than retention: Duration) throws -> Bool {
        let now = clock.now().milliseconds
        if done.boot == boot { return now &- done.boottime >= retention.milliseconds }
        // How long each boot since then ran, as far as known.
        let ran = """
            SELECT total(ran) FROM (SELECT max(boottime) AS ran FROM clock_map
            WHERE boot>=? AND boot<? GROUP BY boot)
            """
        let before = try connection.integer(ran, done.boot, boot) ?? 0
        return now &+ max(0, before &- done.boottime) >= retention.milliseconds
    }

    /// Deletes the records of a batch up to `through`, and the batch if that is its last.
    private func removeFront(of batch: Done, through: Int64) throws {
        mustHold(batch.range.contains(through), "only records of the batch are removed with it")
        try begin()
        if through == batch.last {
            try connection.run("DELETE FROM batches WHERE id=?", batch.id)
        } else {
            // Under its old key the rest would be taken for the whole, or overwrite it in a bucket.
            let update = "UPDATE batches SET uuid=iif(state=1, ?, uuid), first=? WHERE id=?"
            try connection.run(update, newKey(), through + 1, batch.id)
        }
        try remove(batch.partition, batch.first...through)
    }

    // MARK: Rows

    /// Deletes a range's rows with everything only they used, and marks their numbers as settled.
    func remove(_ partition: Partition, _ range: ClosedRange<Int64>) throws {
        try settle(partition, range)
        guard partition.isLive, let kind = streams[partition.stream] else { return }
        if case .sound = kind.shape {
            memory.asked.remove(range)
            try removeSegments(ofChunks: range)
        }
        try connection.run(
            "DELETE FROM \(kind.table) WHERE id BETWEEN ? AND ?",
            range.lowerBound,
            range.upperBound
        )
        try forgetSeeds(kind)
        if case .sightings = kind.shape { try forgetBeacons(range) }
    }

    /// Deletes id seeds that no remaining row uses.
    private func forgetSeeds(_ kind: StreamKind) throws {
        let number = Int64(kind.stream.number)
        try connection.run(
            """
            DELETE FROM id_seeds WHERE stream=?1 AND first < ifnull((SELECT max(first) FROM id_seeds
            WHERE stream=?1 AND first<=ifnull((SELECT min(id) FROM \(kind.table)), ?2)), 0)
            """,
            number,
            memory[Partition(kind.stream)].next
        )
    }

    /// Deletes identities whose last sighting is deleted.
    ///
    /// Works through the table in parts, because a crowd with changing addresses leaves a hundred
    /// thousand rows. Each part is twice as large as the deleted range, so the table stays below
    /// twice the needed size.
    private func forgetBeacons(_ range: ClosedRange<Int64>) throws {
        let first = beaconsLookedAt + 1
        let end = try connection.integer(
            "SELECT id FROM beacons WHERE id>=? ORDER BY id LIMIT 1 OFFSET ?",
            first,
            max(4096, 2 * Int64(range.count))
        )
        try connection.run(
            """
            DELETE FROM beacons WHERE id BETWEEN ?1 AND ?2 AND last_sighting<?3
            AND id NOT IN (SELECT beacon FROM sightings WHERE id<?3)
            """,
            first,
            end ?? .max,
            try firstSighting() ?? range.upperBound + 1
        )
        beaconsLookedAt = end ?? 0
    }

    /// Skip at most this many sightings in quarantine per removal.
    private static let maxHeld: Int64 = 16_384

    /// Returns the first sighting not in quarantine, where sightings may stay for months.
    private func firstSighting() throws -> Int64? {
        let next = "SELECT id FROM sightings WHERE id>? ORDER BY id LIMIT 1"
        var first = try connection.integer(next, 0)
        guard (1...Self.maxHeld).contains(memory[Partition(.beacons)].quarantined) else {
            return first
        }
        let held = try connection.prepare(
            "SELECT first, last FROM batches WHERE state=2 AND database=0 AND stream=? ORDER BY first"
        )
        try held.bind(Int64(Stream.beacons.number), at: 1)
        while let oldest = first, try held.step(), held.required(0) <= oldest {
            if held.required(1) >= oldest { first = try connection.integer(next, held.required(1)) }
        }
        return first
    }

    private func removeSegments(ofChunks range: ClosedRange<Int64>) throws {
        let runs = try connection.prepare(
            """
            SELECT run, min(first_segment), max(first_segment+segments-1) FROM chunks
            WHERE id BETWEEN ? AND ? GROUP BY run
            """,
            range.lowerBound,
            range.upperBound
        )
        while try runs.step() {
            try removeSegments(
                run: runs.required(0),
                runs.required(1)...max(runs.required(1), runs.required(2)),
                ofChunks: range
            )
        }
        // A run without chunks is finished, unless it is being recorded.
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

    /// Deletes the segments of a run that only the given chunks need.
    ///
    /// A chunk shares segments with its neighbors, and the segment before its first is its
    /// decoder's pre-roll: without it the bytes of a batch would change between retries.
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
