// Records that are not on disk yet: those of the open transaction, and all during an outage.
import Host
import Records

/// An ordered buffer, bounded by record count and by audio bytes.
struct Backlog {
    /// Audio bytes held during an outage: half an hour at 24 kb/s.
    static let soundLimit = 6 << 20

    /// An audio run and the index of its next segment.
    struct OpenRun {
        var run: AudioRun
        var next: Int64
    }

    private(set) var held: [QueuedRecord] = []
    /// The run that was open before the first held record; held segments may belong to it.
    private(set) var openRun: OpenRun?
    private var latestRun: OpenRun?
    private let limit: Int
    private var records = 0
    private var soundBytes = 0
    /// Those of the held records that `InFlight` counts.
    private(set) var tally = InFlight.Tally()

    /// Creates an empty backlog for at most `limit` records, segments included.
    init(limit: Int) { self.limit = limit }

    /// Holds a record; returns false if the buffer is full.
    ///
    /// Boundaries of runs are always held: without them, segments could not be assigned to a run.
    mutating func hold(_ record: QueuedRecord) -> Bool {
        let count = record.count
        var bytes = 0
        if case .segment(let segment) = record { bytes = segment.data.count }
        guard count == 0 || records == 0 || records + count <= limit,
            soundBytes + bytes <= Self.soundLimit
        else { return false }
        switch record {
        case .sighting: tally.sightings += 1
        case .row(let row): tally.rows[row.stream, default: 0] += 1
        case .begin(let run): latestRun = OpenRun(run: run, next: 0)
        case .segment(let segment): latestRun?.next = segment.index + 1
        case .end: latestRun = nil
        case .put, .place: break
        }
        records += count
        soundBytes += bytes
        held.append(record)
        return true
    }

    /// Empties the buffer and returns its records, to be written again.
    mutating func takeAll() -> [QueuedRecord] {
        defer {
            held = []
            records = 0
            soundBytes = 0
            tally = .init()
            latestRun = openRun
        }
        invariant(
            held.reduce(0) { $0 + $1.count } == records,
            "the records in memory are counted"
        )
        return held
    }

    /// The losses if none of the records is ever written.
    ///
    /// Excludes `put` records: the sender gets an error.
    var losses: [Loss] {
        var tally = LossTally()
        var sound = HeldAudio(openRun)
        for record in held {
            switch record {
            case .begin(let run):
                if let loss = sound.loss { tally.add(loss) }
                sound = HeldAudio(OpenRun(run: run, next: 0))
            case .segment(let segment): sound.hear(until: segment.index + 1, at: segment.start)
            case .end(_, let count, let end): sound.hear(until: count, at: end)
            default: tally.add(record.losses())
            }
        }
        if let loss = sound.loss { tally.add(loss) }
        return tally.all
    }

    /// Clears the buffer after a commit.
    mutating func clear() {
        held.removeAll(keepingCapacity: held.capacity < 4096)
        records = 0
        soundBytes = 0
        tally = .init()
        openRun = latestRun
    }
}

/// Counts held segments of one run, including gaps for which there was no room.
private struct HeldAudio {
    private let run: AudioRun?
    private var next: Int64
    private var count: Int64 = 0
    private var from: Stamp?
    private var to: Stamp?

    init(_ open: Backlog.OpenRun?) {
        run = open?.run
        next = open?.next ?? 0
    }

    /// Counts segments up to index `end`, which were captured by `moment`.
    mutating func hear(until end: Int64, at moment: Stamp) {
        guard end > next else { return }
        count += end - next
        next = end
        from = from ?? moment
        to = moment
    }

    /// The segments as a loss, in chunks that they would have made.
    var loss: Loss? {
        guard count > 0, let from, let to else { return nil }
        let chunks = run?.chunks(of: count) ?? count
        return Loss(.dropped, .audio, records: chunks, from: from, to: to)
    }
}
