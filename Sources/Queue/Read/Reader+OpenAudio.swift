// Reads the audio of a quarantined database that is not in a chunk yet.
import Host
import Records
import SQLite

extension Reader {
    /// The maximum segments of a chunk: ten minutes of 20 ms each.
    private static let longest = 30_000

    /// Returns the last run's unchunked segments as a chunk; nil if there are none.
    func soundWithoutChunk() throws -> Stored<Chunk>? {
        guard let run = try unchunkedRun() else { return nil }
        do {
            return try segments(of: run, try unchunked(run))
        } catch let error as SQLiteError where error.isDamage && mark == nil {
            // The damaged page may belong to an earlier run, which is fully chunked. Use >=: with >
            // SQLite would first look up the last of its segments.
            return try segments(of: run, "id>=1+(SELECT max(chunked) FROM runs)")
        }
    }

    private func segments(of run: AudioRun, _ condition: String) throws -> Stored<Chunk>? {
        let rows = try query(
            """
            SELECT id, boot, boottime, wall, frames, mean_square FROM segments
            WHERE \(condition) AND run=\(run.id) ORDER BY id LIMIT \(Self.longest + 1)
            """
        )
        var tail: Stored<Chunk>?
        do {
            while try rows.step() {
                if tail == nil { tail = try firstOfTail(rows, run) }
                let next = (tail?.record.firstSegment ?? 0) + Int64(tail?.record.segments ?? 0)
                guard rows.required(0) == next, next.isPlausible, rows.required(4).isPlausible
                else {
                    isTailCut = true
                    break
                }
                tail?.record.segments += 1
                tail?.record.frames += Int(rows.required(4))
            }
        } catch let error as SQLiteError where error.isDamage && tail != nil {
            // Segments before the damaged page can be sent.
            isTailCut = true
        }
        if let mark, let tail, tail.record.segments < mark.tail.count { isTailCut = true }
        return tail.flatMap { $0.record.segments <= Self.longest ? $0 : nil }
    }

    private func unchunkedRun() throws -> AudioRun? {
        guard let mark else { return try loadRun(connection) }
        return mark.tail.isEmpty ? nil : try loadRun(connection, "id=\(mark.run)")
    }

    /// Returns the SQL condition for the segments of a run that are not in a chunk.
    private func unchunked(_ run: AudioRun) throws -> String {
        if let mark { return "id>=\(mark.tail.lowerBound) AND id<\(mark.tail.upperBound)" }
        let last = try query("SELECT max(first_segment+segments-1) FROM chunks WHERE run=\(run.id)")
        var chunked = try last.step() ? last.integer(0) ?? 0 : 0
        let stored = try query("SELECT chunked FROM runs WHERE id=\(run.id)")
        if try stored.step() { chunked = max(chunked, stored.required(0)) }
        return "id>\(chunked)"
    }

    /// Returns the number that the tail would have as a chunk.
    private func nextChunk() throws -> Int64 {
        if let mark { return mark.next[Stream.audio.name] ?? 1 }
        let next = try query("SELECT next FROM sequences WHERE database=0 AND stream=2")
        return try next.step() ? next.required(0) : 1
    }

    private func firstOfTail(_ row: borrowing Statement, _ run: AudioRun) throws -> Stored<Chunk> {
        Stored(
            sequence: try nextChunk(),
            boot: row.required(1),
            record: Chunk(
                codec: run.codec,
                rate: run.rate,
                device: run.device,
                preskip: run.preskip,
                firstSegment: row.required(0),
                segments: 0,
                frames: 0,
                overlapFrames: 0,
                meanSquare: row.number(5) ?? 0,
                start: row.stamp(boottime: 2)
            )
        )
    }
}
