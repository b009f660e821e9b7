// The writer's part for sound: runs, segments, and the chunks made of them.
internal import Host

extension Writer {
    func begin(_ run: AudioRun) throws {
        try endRun()
        try begin()
        try insertRun(run)
        chunker.begin(run)
    }

    func insertRun(_ run: AudioRun) throws {
        let statement = try connection.prepare("INSERT OR IGNORE INTO runs VALUES (?,?,?,?,?,?)")
        try statement.bind(run.device, at: 4)
        try statement.bind([run.id, Int64(run.codec.rawValue), Int64(run.rate)], from: 1)
        try statement.bind([Int64(run.preskip), Int64(run.overlapSegments)], from: 5)
        try statement.run()
    }

    /// Stores a segment, and the chunk that it completes.
    func insert(_ segment: Segment) throws {
        try begin()
        let note = try insertSegment(segment, boot: boot)
        noteBytes(segment.data.count)
        let run = chunker.run
        if let chunk = chunker.append(note) { try insert(chunk, of: run) }
        // Two seconds of sound are never more than a moment from the disk.
        commitSoon()
    }

    /// Stores a segment of a boot; `id` nil: as the newest.
    func insertSegment(_ segment: Segment, id: Int64? = nil, boot: Int64) throws -> SegmentNote {
        try insertSegment.bind(id, at: 1)
        try insertSegment.bind([segment.run, Int64(segment.frames)], from: 2)
        try insertSegment.bind(segment.meanSquare, at: 4)
        try bind(segment.start, of: boot, insertSegment, from: 5)
        try insertSegment.bind(segment.data, at: 8)
        try insertSegment.run()
        return SegmentNote(
            id: connection.lastInsertedRow,
            frames: Int64(segment.frames),
            meanSquare: segment.meanSquare,
            bytes: Int64(segment.data.count),
            time: (boot, segment.start.boot.milliseconds, segment.start.wall.milliseconds)
        )
    }

    func endRun() throws {
        let run = chunker.run
        guard let chunk = chunker.end() else { return }
        try insert(chunk, of: run)
        commitSoon()
    }

    private func insert(_ chunk: ChunkNote, of run: AudioRun?) throws {
        guard let run, let first = chunk.segments.first else { return }
        try begin()
        if let minimum = run.minimumLevel, SoundLevel.decibels(chunk.meanSquare) < minimum {
            chunker.leaveOut()
            let next = counters[.audio]?.next ?? 1
            let last = chunk.segments.last ?? first
            try removeSegments(run: run.id, first.id...last.id, ofChunks: next...next)
            return try connection.run(
                "UPDATE streams SET not_kept=not_kept+1 WHERE id=?",
                Int64(Stream.audio.rawValue)
            )
        }
        try insertChunk(chunk, of: run.id, from: first)
    }

    /// Stores a chunk, which begins with segment `first`.
    func insertChunk(_ chunk: ChunkNote, of run: Int64, from first: SegmentNote) throws {
        let sequence = nextSequence(.audio, bytes: Int(chunk.bytes))
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
            try connection.integer(
                "SELECT max(first_segment+segments-1) FROM chunks WHERE run=?",
                run.id
            ) ?? 0
        let from = chunked == 0 ? 0 : chunked - Int64(run.overlapSegments) + 1
        let notes = unbroken(try segmentNotes(run: run.id, from: from))
        chunker = Chunker(
            resuming: run,
            notes: notes,
            shared: notes.prefix { $0.id <= chunked }.count
        )
        try endRun()
        try commit()
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
            notes.append(
                SegmentNote(
                    id: rows.required(0),
                    frames: rows.required(1),
                    meanSquare: rows.number(2) ?? 0,
                    bytes: rows.required(3),
                    time: (rows.required(4), rows.required(5), rows.required(6))
                )
            )
        }
        return notes
    }
}

/// The run that was recorded last.
func loadLastRun(_ connection: borrowing Connection) throws -> AudioRun? {
    let runs = try connection.prepare(
        "SELECT id, codec, rate, device, preskip, overlap_segments FROM runs ORDER BY id DESC LIMIT 1"
    )
    guard try runs.step(), let codec = AudioCodec(rawValue: Int(runs.required(1))) else {
        return nil
    }
    return AudioRun(
        id: runs.required(0),
        codec: codec,
        rate: Int(runs.required(2)),
        device: runs.text(3),
        preskip: Int(runs.required(4)),
        overlapSegments: Int(runs.required(5))
    )
}
