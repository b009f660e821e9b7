// The writer's part for sound: runs, segments, and the chunks made of them.
import Host
import Records
import SQLite

extension Writer {
    /// `index`: the place of the first segment to come in what the source calls this run.
    func begin(_ run: AudioRun, from index: Int64 = 0) throws {
        try endRun()
        try begin()
        var stored = run
        stored.id = memory.numbers.runs
        memory.numbers.runs += 1
        try insertRun(stored)
        // Should this database be set aside before the first chunk, its segments become one that needs an id.
        if !memory[Partition(.audio)].hasSeed { try storeSeed(.audio) }
        chunker.begin(stored, token: run.id, from: index)
    }

    func insertRun(_ run: AudioRun) throws {
        let statement = try connection.prepare(
            """
            INSERT INTO runs(id, codec, rate, device, preskip, overlap_segments)
            VALUES (?,?,?,?,?,?)
            """
        )
        try statement.bind(run.device, at: 4)
        try statement.bind([run.id, Int64(run.codec.rawValue), Int64(run.rate)], from: 1)
        try statement.bind([Int64(run.preskip), Int64(run.overlapSegments)], from: 5)
        try statement.run()
    }

    /// Stores a segment, and the chunk that it completes.
    ///
    /// Where segments before it are missing, whoever lost them, a new run begins: no chunk has a hole.
    func insert(_ segment: Segment) throws {
        try begin()
        guard chunker.token == segment.run, chunker.run != nil else {
            return try note(
                Loss(.dropped, .audio, records: 1, from: segment.start, to: segment.start)
            )
        }
        if segment.index != chunker.nextIndex { try jump(to: segment.index, at: segment.start) }
        let note = try store(segment)
        noteBytes(segment.data.count)
        let run = chunker.run
        chunker.heard(segment)
        if let chunk = chunker.append(note) { try insert(chunk, of: run) }
        // Two seconds of sound are never more than a moment from the disk.
        commitSoon()
    }

    /// Segments up to `index` did not come: they are entered as lost, and the run goes on as another.
    private func jump(to index: Int64, at start: Stamp) throws {
        try noteMissing(until: index, at: start)
        try cutRun(at: index)
    }

    /// What was recorded so far becomes a chunk, if a short one; the run goes on as another, so that what is missing of
    /// it is still counted at its end.
    func cutRun(at index: Int64? = nil) throws {
        guard var next = chunker.run else { return }
        // One of a run of the program before this one has no source any more.
        guard chunker.token != 0 else { return try endRun() }
        next.id = chunker.token
        try begin(next, from: index ?? chunker.nextIndex)
    }

    /// Counts segments that are missing before `index` as the chunks that they would have made.
    private func noteMissing(until index: Int64, at moment: Stamp) throws {
        guard let run = chunker.run, index > chunker.nextIndex else { return }
        try note(
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

    /// Ends the run that is open; its source had `count` segments, if it said so.
    func endRun(count: Int64? = nil, at end: Stamp? = nil) throws {
        if let count { try noteMissing(until: count, at: end ?? clock.stamp()) }
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

    /// Segments that no chunk will have, with the one before them: the next chunk would have been decoded from it.
    private func removeUnkept(_ segments: ClosedRange<Int64>, of run: AudioRun) throws {
        try begin()
        let next = memory[Partition(.audio)].next
        try removeSegments(run: run.id, segments, ofChunks: next...next)
    }

    private func insert(_ chunk: ChunkNote, of run: AudioRun?) throws {
        guard let run, let first = chunk.segments.first else { return }
        try begin()
        if let minimum = run.minimumLevel, SoundLevel.decibels(chunk.meanSquare) < minimum {
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

    /// Stores a chunk, which begins with segment `first`.
    func insertChunk(_ chunk: ChunkNote, of run: Int64, from first: SegmentNote) throws {
        let sequence = try nextSequence(.audio, bytes: StreamKind.rowBytes + Int(chunk.bytes))
        let statement = try connection.prepare("INSERT INTO chunks VALUES (?,?,?,?,?,?,?,?,?,?,?)")
        try statement.bind(
            [
                sequence, run, first.id, Int64(chunk.segments.count), chunk.frames,
                chunk.overlapFrames,
            ],
            from: 1
        )
        try statement.bind(chunk.meanSquare, at: 7)
        let time = first.time
        try statement.bind([chunk.bytes, time.boot, time.boottime, time.wall], from: 8)
        try statement.run()
    }

    /// A run that a crash cut off: its last segments, in no chunk yet, become a short one.
    func recoverSound() throws {
        guard let run = try loadLastRun(connection) else { return }
        let chunked =
            try (connection.integer("SELECT chunked FROM runs WHERE id=?", run.id) ?? 0)
            .checked("the last segment of a chunk")
        // In no chunk yet: it comes behind all those before it, which may be gigabytes.
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

    /// What comes after the last hole, which a chunk that was not kept has left.
    private func unbroken(_ notes: [SegmentNote]) -> [SegmentNote] {
        let hole = notes.indices.dropFirst().last { notes[$0].id != notes[$0 - 1].id + 1 }
        return Array(notes[(hole ?? 0)...])
    }

    private func segmentNotes(run: Int64, from first: Int64) throws -> [SegmentNote] {
        let rows = try connection.prepare(
            """
            SELECT id, frames, mean_square, length(data), boot, boottime, wall FROM segments
            WHERE run=? AND id>=? ORDER BY id
            """
        )
        try rows.bind(run, at: 1)
        try rows.bind(first, at: 2)
        var notes: [SegmentNote] = []
        while try rows.step() {
            _ = try max(0, rows.required(0)).checked("a segment")
            notes.append(
                SegmentNote(
                    id: rows.required(0),
                    frames: try rows.required(1).checked("the frames of a segment"),
                    meanSquare: rows.number(2) ?? 0,
                    bytes: rows.required(3),
                    time: (rows.required(4), rows.required(5), rows.required(6))
                )
            )
        }
        return notes
    }
}
