// Which segments make which chunk.
import Host
import Records
import SQLite

/// A segment as far as a chunk needs to know it.
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

/// A chunk: neighbouring segments of one run by reference.
struct ChunkNote: Equatable {
    var segments: [SegmentNote]
    /// Frames that it shares with the chunk before.
    var overlapFrames: Int64

    var frames: Int64 { segments.reduce(0) { $0 + $1.frames } }
    var bytes: Int64 { segments.reduce(0) { $0 + $1.bytes } }

    /// The mean of the squared samples over all its frames.
    var meanSquare: Double {
        let frames = Double(max(1, self.frames))
        return segments.reduce(0) { $0 + $1.meanSquare * Double($1.frames) } / frames
    }
}

extension AudioRun {
    /// How many chunks so many segments would have made; what a chunk shares with the one before is not its own.
    func chunks(of segments: Int64) -> Int64 {
        let share = Int64(max(1, chunkSegments - overlapSegments))
        return (segments + share - 1) / share
    }
}

/// Gathers the segments of a run and says when a chunk is complete.
struct Chunker {
    /// The run as it is stored.
    private(set) var run: AudioRun?
    /// What the run's source calls it.
    private(set) var token: Int64 = 0
    /// The place in the source's run that comes next.
    private(set) var nextIndex: Int64 = 0
    /// When the last segment ended.
    private(set) var end: Stamp?
    private var notes: [SegmentNote] = []
    /// How many of `notes` were in the chunk before.
    private var shared = 0
    /// Whether the chunk that has those is kept.
    private var neighbourIsKept = true

    init() {}

    /// The first segment that a chunk to come will have.
    var firstNeeded: Int64? { notes.first?.id }

    /// The first segment that is in no chunk yet.
    var firstUnchunked: Int64? { notes.count > shared ? notes[shared].id : nil }

    /// All that it has is of a chunk that is not kept.
    var isUnkept: Bool { !neighbourIsKept && notes.count <= shared }

    /// The chunk made last is not kept: the next one shares nothing with another.
    mutating func leaveOut() { neighbourIsKept = false }

    /// Goes on with a run after a restart: the segments that no chunk has, after those it shares.
    init(resuming run: AudioRun, notes: [SegmentNote], shared: Int) {
        self.run = run
        self.notes = notes
        self.shared = shared
    }

    /// `index`: the place of its first segment in what its source calls a run.
    mutating func begin(_ run: AudioRun, token: Int64, from index: Int64) {
        self = Chunker()
        self.run = run
        self.token = token
        nextIndex = index
    }

    /// A segment was stored.
    mutating func heard(_ segment: Segment) {
        nextIndex = segment.index + 1
        let length = Int64(segment.frames) * 1000 / Int64(max(1, run?.rate ?? 1))
        end = segment.start.advanced(by: .milliseconds(length))
    }

    mutating func append(_ note: SegmentNote) -> ChunkNote? {
        notes.append(note)
        guard let run, notes.count >= run.chunkSegments else { return nil }
        let chunk = take()
        neighbourIsKept = true
        notes.removeFirst(max(1, min(notes.count, run.chunkSegments - run.overlapSegments)))
        shared = notes.count
        return chunk
    }

    /// Ends the run: what no chunk has yet becomes a short one.
    mutating func finish() -> ChunkNote? {
        defer { self = Chunker() }
        return notes.count > shared ? take() : nil
    }

    private func take() -> ChunkNote {
        ChunkNote(
            segments: notes,
            overlapFrames: neighbourIsKept ? notes.prefix(shared).reduce(0) { $0 + $1.frames } : 0
        )
    }
}
