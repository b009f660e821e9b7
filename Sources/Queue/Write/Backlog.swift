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

    private(set) var jobs: [Job] = []
    /// The run that was open before the first held job; held segments may belong to it.
    private(set) var openRun: OpenRun?
    private var latestRun: OpenRun?
    private let limit: Int
    private var records = 0
    private var soundBytes = 0
    /// Those of the held records that `InFlight` counts.
    private(set) var tally = InFlight.Tally()

    /// Creates an empty backlog for at most `limit` records, segments included.
    init(limit: Int) { self.limit = limit }

    var isEmpty: Bool { jobs.isEmpty }

    /// Holds a job; returns false if the buffer is full.
    mutating func hold(_ job: Job) -> Bool {
        switch job {
        case .segment(let segment):
            guard soundBytes + segment.data.count <= Self.soundLimit, records < limit else {
                return false
            }
            soundBytes += segment.data.count
            records += 1
            latestRun?.next = segment.index + 1
        case .sighting:
            guard records < limit else { return false }
            records += 1
            tally.sightings += 1
        case .row(let row):
            guard records < limit else { return false }
            records += 1
            tally.rows[row.stream, default: 0] += 1
        case .place:
            guard records < limit else { return false }
            records += 1
        case .put(let rows, _):
            guard records == 0 || records + rows.count <= limit else { return false }
            records += rows.count
        case .begin(let run):
            // Always held: without it, held segments could not be assigned to a run.
            latestRun = OpenRun(run: run, next: 0)
        case .end:
            latestRun = nil
        case .work, .check, .purge, .limit, .commitInterval, .declare, .damaged, .stop:
            return true
        }
        jobs.append(job)
        return true
    }

    /// Empties the buffer and returns its jobs, to be written again.
    mutating func takeAll() -> [Job] {
        defer {
            jobs = []
            records = 0
            soundBytes = 0
            tally = .init()
            latestRun = openRun
        }
        return jobs
    }

    /// The losses if none of the jobs is ever written.
    ///
    /// Excludes `put` records: the sender gets an error.
    var losses: [Loss] {
        var tally = LossTally()
        var sound = HeldSound(openRun)
        for job in jobs {
            switch job {
            case .begin(let run):
                if let loss = sound.loss { tally.add(loss) }
                sound = HeldSound(OpenRun(run: run, next: 0))
            case .segment(let segment): sound.hear(until: segment.index + 1, at: segment.start)
            case .end(_, let count, let end): sound.hear(until: count, at: end)
            default: tally.add(job.losses)
            }
        }
        if let loss = sound.loss { tally.add(loss) }
        return tally.all
    }

    /// Clears the buffer after a commit.
    mutating func clear() {
        jobs.removeAll(keepingCapacity: jobs.capacity < 4096)
        records = 0
        soundBytes = 0
        tally = .init()
        openRun = latestRun
    }
}

/// Counts held segments of one run, including gaps for which there was no room.
private struct HeldSound {
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

extension Job {
    /// The losses if the job is dropped: its record, and the loss that the record itself reports.
    var losses: [Loss] {
        guard case .row(let row) = self else { return [loss].compactMap { $0 } }
        return [loss, row.loss].compactMap { $0 }
    }

    /// The loss of the job's record; nil for audio, where the writer detects the gap.
    var loss: Loss? {
        switch self {
        case .sighting(let sighting):
            Loss(.dropped, .beacons, records: 1, from: sighting.stamp, to: sighting.stamp)
        case .row(let row): Loss(.dropped, row.stream, records: 1, from: row.stamp, to: row.stamp)
        case .segment, .put, .place, .begin, .end, .work, .check, .purge, .limit, .commitInterval,
            .declare, .damaged, .stop:
            nil
        }
    }
}

extension Writer {
    func insert(_ job: Job) throws {
        switch job {
        case .sighting(let sighting): try insert(sighting)
        case .row(let row): try insert(row)
        case .put(let rows, _): for row in rows { try insert(row) }
        case .place(let fix): try insert(place: fix)
        case .begin(let run): try begin(run)
        case .segment(let segment): try insert(segment)
        case .end(_, let count, let end): try endRun(count: count, at: end)
        case .work, .check, .purge, .limit, .commitInterval, .declare, .damaged, .stop: break
        }
    }
}
