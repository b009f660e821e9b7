// Stores audio: runs, segments, and the chunks made of them.
import Host
import Records
import SQLite

extension Writer {
    /// Begins a run; `index` is the source's index of its next segment.
    func begin(_ run: AudioRun, from index: Int64 = 0) throws {
        try endRun()
        try begin()
        var stored = run
        stored.id = memory.numbers.runs
        memory.numbers.runs += 1
        try insertRun(stored)
        // If quarantined before its first chunk, the segments form one that needs an id.
        if !memory[Partition(.audio)].hasSeed { try storeSeed(.audio) }
        chunker.begin(stored, token: run.id, from: index)
    }

    func insertRun(_ run: AudioRun) throws {
        try connection.run(
            """
            INSERT INTO runs(id, codec, rate, device, preskip, overlap_segments)
            VALUES (?,?,?,?,?,?)
            """,
            run.id,
            run.codec.rawValue,
            run.rate,
            run.device,
            run.preskip,
            run.overlapSegments
        )
    }

    /// Stores a segment and the chunk that it completes.
    ///
    /// If earlier segments were lost anywhere, a new run begins: a chunk never has a gap.
    func insert(_ segment: Segment) throws {
        try begin()
        guard chunker.token == segment.run, chunker.run != nil else {
            return try record(
                Loss(.dropped, .audio, records: 1, from: segment.start, to: segment.start)
            )
        }
        if segment.index != chunker.nextIndex { try jump(to: segment.index, at: segment.start) }
        let note = try store(segment)
        recordBytes(segment.data.count)
        let run = chunker.run
        let isContinued = chunker.end != nil
        chunker.heard(segment)
        if let end = chunker.end {
            memory.effort.heard.append(
                EffortNotes.Heard(from: segment.start, to: end, isContinued: isContinued)
            )
        }
        if let chunk = chunker.append(note) { try insert(chunk, of: run) }
        // Audio is committed at once: each segment holds two seconds.
        commitSoon()
    }

    /// Records the segments before `index` as lost and continues in a new run.
    private func jump(to index: Int64, at start: Stamp) throws {
        try recordMissing(until: index, at: start)
        try cutRun(at: index)
    }

    /// Closes the open chunk, which may be short, and continues in a new run.
    ///
    /// The new run keeps the source's token, so segments missing at its end are still counted.
    func cutRun(at index: Int64? = nil) throws {
        guard var next = chunker.run else { return }
        // A run recovered from an earlier process does not have a source.
        guard chunker.token != 0 else { return try endRun() }
        next.id = chunker.token
        try begin(next, from: index ?? chunker.nextIndex)
    }

    /// Records segments missing before `index` as lost, in chunks that they would have made.
    private func recordMissing(until index: Int64, at moment: Stamp) throws {
        guard let run = chunker.run, index > chunker.nextIndex else { return }
        try record(
            Loss(
                .dropped,
                .audio,
                records: run.chunks(of: index - chunker.nextIndex),
                from: chunker.end ?? moment,
                to: moment
            )
        )
    }

    private func store(_ segment: Segment) throws -> SegmentNote {
        mustHold(segment.index == chunker.nextIndex, "a segment follows the one before it")
        let row = memory.numbers.segments
        memory.numbers.segments += 1
        try insertSegment.bind(row, at: 1)
        try insertSegment.bind([chunker.run?.id, Int64(segment.frames)], from: 2)
        try insertSegment.bind(segment.meanSquare, at: 4)
        try bind(segment.start, insertSegment, from: 5)
        try insertSegment.bind(segment.data, at: 8)
        try insertSegment.bind(Checksum.of(segment.data), at: 9)
        try insertSegment.run()
        return SegmentNote(
            id: row,
            frames: Int64(segment.frames),
            meanSquare: segment.meanSquare,
            bytes: Int64(segment.data.count),
            time: (boot, segment.start.boot.milliseconds, segment.start.wall.milliseconds)
        )
    }

    /// Ends the open run; `count` is the number of segments its source produced, if known.
    func endRun(count: Int64? = nil, at end: Stamp? = nil) throws {
        if let count { try recordMissing(until: count, at: end ?? clock.stamp()) }
        let (run, isUnkept) = (chunker.run, chunker.isUnkept)
        let rest = chunker.firstNeeded ?? memory.numbers.segments
        memory.soundEnd = chunker.end ?? memory.soundEnd
        if let chunk = chunker.finish() {
            try insert(chunk, of: run)
        } else if let run, isUnkept {
            try removeUnkept(rest...max(rest, memory.numbers.segments - 1), of: run)
        } else {
            return
        }
        commitSoon()
    }

    /// Deletes segments that no chunk will use, and their pre-roll for the next chunk's decoder.
    private func removeUnkept(_ segments: ClosedRange<Int64>, of run: AudioRun) throws {
        try begin()
        let next = memory[Partition(.audio)].next
        try removeSegments(run: run.id, segments, ofChunks: next...next)
    }

    private func insert(_ chunk: ChunkReceipt, of run: AudioRun?) throws {
        guard let run, let first = chunk.segments.first else { return }
        try begin()
        if let minimum = run.minimumLevel, AudioLevel.decibels(chunk.meanSquare) < minimum {
            chunker.leaveOut()
            try removeUnkept(first.id...(chunk.segments.last ?? first).id, of: run)
            memory[Partition(.audio)].notKept += 1
            return
        }
        try insertChunk(chunk, of: run.id, from: first)
        try connection.run(
            "UPDATE runs SET chunked=? WHERE id=?",
            first.id + Int64(chunk.segments.count) - 1,
            run.id
        )
    }

    /// Stores a chunk that begins with segment `first`.
    func insertChunk(_ chunk: ChunkReceipt, of run: Int64, from first: SegmentNote) throws {
        mustHold(
            chunk.segments.last?.id == first.id + Int64(chunk.segments.count) - 1,
            "a chunk has no gap"
        )
        invariant(chunk.overlapFrames <= chunk.frames, "a chunk holds what it shares")
        let sequence = try nextSequence(.audio, bytes: StreamKind.rowBytes + Int(chunk.bytes))
        let statement = try connection.prepare("INSERT INTO chunks VALUES (?,?,?,?,?,?,?,?,?,?,?)")
        let time = first.time
        let values: [any SQLValue] = [
            sequence, run, first.id, chunk.segments.count, chunk.frames, chunk.overlapFrames,
            chunk.meanSquare, chunk.bytes, time.boot, time.boottime, time.wall,
        ]
        try statement.bind(values, from: 1)
        try statement.run()
        try holdUnlessMarked(sequence)
    }

    /// Turns the unchunked segments of a run that a crash cut off into a short chunk.
    func recoverAudio() throws {
        guard let run = try loadRun(connection) else { return }
        let chunked =
            try (connection.integer("SELECT chunked FROM runs WHERE id=?", run.id) ?? 0)
            .checked("the last segment of a chunk")
        // The run has no chunk yet: start after all earlier runs, which may be gigabytes.
        let before =
            try chunked == 0
            ? connection.integer(
                "SELECT max(chunked) FROM runs WHERE chunked<?",
                memory.numbers.segments
            ) : nil
        let from = before.map { $0 + 1 } ?? chunked - Int64(run.overlapSegments) + 1
        let notes = unbroken(try segmentNotes(run: run.id, from: from))
        chunker = Chunker(
            resuming: run,
            notes: notes,
            shared: notes.prefix { $0.id <= chunked }.count
        )
        try endRun()
    }

    /// Returns the segments after the last gap, which an unkept chunk left behind.
    private func unbroken(_ notes: [SegmentNote]) -> [SegmentNote] {
        let hole = notes.indices.dropFirst().last { notes[$0].id != notes[$0 - 1].id + 1 }
        return Array(notes[(hole ?? 0)...])
    }

    private func segmentNotes(run: Int64, from first: Int64) throws -> [SegmentNote] {
        let rows = try connection.prepare(
            """
            SELECT id, frames, mean_square, length(data), boot, boottime, wall FROM segments
            WHERE run=? AND id>=? ORDER BY id
            """,
            run,
            first
        )
        return try rows.compactMap { row in
            _ = try max(0, row.required(0)).checked("a segment")
            return SegmentNote(
                id: row.required(0),
                frames: try row.required(1).checked("the frames of a segment"),
                meanSquare: row.number(2) ?? 0,
                bytes: row.required(3),
                time: (row.required(4), row.required(5), row.required(6))
            )
        }
    }
}
