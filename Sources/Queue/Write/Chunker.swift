// Groups the segments of an audio run into chunks.
import Host
import Records
import SQLite

/// The parts of a segment that a chunk needs.
struct SegmentNote: Equatable {
    var id: Int64
    var frames: Int64
    var meanSquare: Double
    var bytes: Int64
    /// `boot`, `boottime` and `wall` of its first frame.
    var time: (boot: Int64, boottime: Int64, wall: Int64)

    static func == (left: Self, right: Self) -> Bool {
        left.id == right.id && left.frames == right.frames && left.time == right.time
    }
}

/// A chunk: consecutive segments of one run, by reference.
struct ChunkReceipt: Equatable {
    var segments: [SegmentNote]
    /// Frames shared with the previous chunk.
    var overlapFrames: Int64

    var frames: Int64 { segments.reduce(0) { $0 + $1.frames } }
    var bytes: Int64 { segments.reduce(0) { $0 + $1.bytes } }

    /// The mean squared sample over all frames.
    var meanSquare: Double {
        let frames = Double(max(1, self.frames))
        return segments.reduce(0) { $0 + $1.meanSquare * Double($1.frames) } / frames
    }
}

extension AudioRun {
    /// Returns how many chunks `segments` would have made, not counting overlaps twice.
    func chunks(of segments: Int64) -> Int64 {
        let share = Int64(max(1, chunkSegments - overlapSegments))
        return (segments + share - 1) / share
    }
}

/// Collects the segments of a run and reports when a chunk is complete.
struct Chunker {
    /// The run as stored in the database.
    private(set) var run: AudioRun?
    /// The source's id of the run.
    private(set) var token: Int64 = 0
    /// The next index in the source's run.
    private(set) var nextIndex: Int64 = 0
    /// When the last segment ended.
    private(set) var end: Stamp?
    private var notes: [SegmentNote] = []
    /// How many of `notes` are also in the previous chunk.
    private var shared = 0
    /// Whether that previous chunk is stored.
    private var neighbourIsKept = true

    init() {}

    /// The first segment that the next chunk needs.
    var firstNeeded: Int64? { notes.first?.id }

    /// The first segment that is not in a chunk yet.
    var firstUnchunked: Int64? { notes.count > shared ? notes[shared].id : nil }

    /// Holds only segments of a chunk that was not stored.
    var isUnkept: Bool { !neighbourIsKept && notes.count <= shared }

    /// Marks the last chunk as not stored: the next one shares no frames with it.
    mutating func leaveOut() { neighbourIsKept = false }

    /// Resumes a run after a restart from its unchunked segments, preceded by the shared ones.
    init(resuming run: AudioRun, notes: [SegmentNote], shared: Int) {
        self.run = run
        self.notes = notes
        self.shared = shared
    }

    /// Begins a run whose first segment has `index` in the source's numbering.
    mutating func begin(_ run: AudioRun, token: Int64, from index: Int64) {
        invariant(index >= 0, "segments are counted from 0")
        self = Chunker()
        self.run = run
        self.token = token
        nextIndex = index
    }

    /// Notes a stored segment.
    mutating func heard(_ segment: Segment) {
        nextIndex = segment.index + 1
        let length = Int64(segment.frames) * 1000 / Int64(max(1, run?.rate ?? 1))
        end = segment.start.advanced(by: .milliseconds(length))
    }

    mutating func append(_ note: SegmentNote) -> ChunkReceipt? {
        mustHold(notes.last.map { $0.id + 1 == note.id } ?? true, "segments of a chunk have no gap")
        notes.append(note)
        guard let run, notes.count >= run.chunkSegments else { return nil }
        let chunk = take()
        neighbourIsKept = true
        notes.removeFirst(max(1, min(notes.count, run.chunkSegments - run.overlapSegments)))
        shared = notes.count
        invariant(shared < chunk.segments.count, "two chunks share a part of one")
        return chunk
    }

    /// Ends the run; the remaining segments become a short chunk.
    mutating func finish() -> ChunkReceipt? {
        defer { self = Chunker() }
        return notes.count > shared ? take() : nil
    }

    private func take() -> ChunkReceipt {
        mustHold(shared < notes.count, "a chunk has audio of its own")
        return ChunkReceipt(
            segments: notes,
            overlapFrames: neighbourIsKept ? notes.prefix(shared).reduce(0) { $0 + $1.frames } : 0
        )
    }
}
