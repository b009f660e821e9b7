// The writer's part for upkeep: purging what was uploaded, and figures.
package import Host

extension Writer {
    /// Deletes at most `limit` records that were uploaded at least `retention` ago; returns how many.
    ///
    /// Age counts on the boot's own clock alone, so a wrong wall clock deletes nothing. Time that passed
    /// with the power off is not known and not counted.
    package func purge(_ stream: Stream, retention: Duration, limit: Int64 = 2000) throws -> Int {
        try begin()
        let id = Int64(stream.rawValue)
        guard let batch = try oldestUploaded(id), try isOlder(batch, than: retention) else {
            return 0
        }
        let purged =
            try connection.integer("SELECT purged_through FROM streams WHERE id=?", id) ?? 0
        guard batch.first <= purged + 1 else { return 0 }
        let through = min(batch.last, max(purged, batch.first - 1) + limit)
        try connection.run("DELETE FROM \(stream.table) WHERE id<=?", through)
        let deleted = connection.changes
        try connection.run("UPDATE streams SET purged_through=? WHERE id=?", through, id)
        if through == batch.last { try connection.run("DELETE FROM batches WHERE id=?", batch.id) }
        switch stream {
        case .audio: try purgeSegments()
        case .beacons: try connection.run("DELETE FROM beacons WHERE last_sighting<=?", through)
        case .location, .events: break
        }
        return deleted
    }

    private struct Done {
        var id: Int64
        var first: Int64
        var last: Int64
        var boot: Int64
        var boottime: Int64
    }

    private func oldestUploaded(_ stream: Int64) throws -> Done? {
        let row = try connection.prepare(
            """
            SELECT id, first, last, done_boot, done_boottime FROM batches
            WHERE stream=? AND state=1 ORDER BY first LIMIT 1
            """
        )
        try row.bind(stream, at: 1)
        guard try row.step() else { return nil }
        return Done(
            id: row.required(0),
            first: row.required(1),
            last: row.required(2),
            boot: row.required(3),
            boottime: row.required(4)
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

    /// Segments that no chunk needs any more; one before the first needed stays for its pre-roll.
    private func purgeSegments() throws {
        let needed = try connection.integer("SELECT min(first_segment) FROM chunks")
        // Without a chunk only the run being recorded still needs its segments.
        let bound =
            try needed
            ?? connection.integer(
                "SELECT min(id) FROM segments WHERE run=?",
                chunker.run?.id ?? -1
            )
        guard let bound else { return }
        try connection.run("DELETE FROM segments WHERE id<?", bound - 1)
    }

    /// Figures for `status`.
    package func statistics() throws -> [StreamStatistics] {
        try Stream.allCases.map { stream in
            let counters = counters[stream] ?? StreamCounters()
            let waiting = counters.next - 1 - counters.frozenThrough
            let average = counters.inserted > 0 ? counters.bytes / counters.inserted : 48
            let oldest =
                try connection.integer(
                    "SELECT min(first) FROM batches WHERE stream=? AND state=0",
                    Int64(stream.rawValue)
                ) ?? (waiting > 0 ? counters.frozenThrough + 1 : nil)
            return StreamStatistics(
                stream: stream,
                accepted: Int(
                    counters.uploaded + counters.quarantined + counters.evicted
                        + counters.ready + waiting
                ),
                pending: Int(waiting + counters.ready),
                pendingBytes: Int((waiting + counters.ready) * average),
                uploaded: Int(counters.uploaded),
                quarantined: Int(counters.quarantined),
                evicted: Int(counters.evicted),
                oldestPendingAt: try oldest.flatMap { try time(of: $0, in: stream) }
            )
        }
    }

    private func time(of sequence: Int64, in stream: Stream) throws -> WallTime? {
        let row = try connection.prepare(
            "SELECT boottime, wall, boot FROM \(stream.table) WHERE id=?"
        )
        try row.bind(sequence, at: 1)
        guard try row.step() else { return nil }
        let stamp = Stamp(
            boot: BootInstant(nanoseconds: row.required(0) &* 1_000_000),
            wall: WallTime(milliseconds: row.required(1))
        )
        return clockMap.resolve(stamp, boot: row.required(2)).wall
    }

    /// Bytes of the database file that new records can use again.
    package func reusableBytes() throws -> Int64 {
        let pages = try connection.integer("PRAGMA freelist_count") ?? 0
        return pages * (try connection.integer("PRAGMA page_size") ?? 4096)
    }

    /// Ids of the database's records.
    package var ids: RecordIDs { recordIDs }
}

/// Figures of one stream: accepted = uploaded + pending + quarantined + evicted.
package struct StreamStatistics: Sendable, Equatable {
    package var stream: Stream
    package var accepted: Int
    package var pending: Int
    package var pendingBytes: Int
    package var uploaded: Int
    package var quarantined: Int
    package var evicted: Int
    package var oldestPendingAt: WallTime?
}

extension Writer {
    /// The most pages that the database may have; SQLite answers FULL beyond it.
    package func limitPages(_ pages: Int64) throws {
        _ = try connection.integer("PRAGMA max_page_count=\(pages)")
    }
}
