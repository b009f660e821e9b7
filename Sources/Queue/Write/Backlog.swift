// Records that the disk does not have yet: those of the open transaction, and all while it refuses.
import Host
import Records

/// Records in order, bounded in number and in bytes of sound.
struct Backlog {
    /// Sound held in memory while the disk refuses: half an hour at 24 kb/s.
    static let soundLimit = 6 << 20

    /// A run of sound, and the place of its segment that comes next.
    struct OpenRun {
        var run: AudioRun
        var next: Int64
    }

    private(set) var jobs: [Job] = []
    /// The run that was open before the first of them: their segments may belong to it.
    private(set) var openRun: OpenRun?
    private var latestRun: OpenRun?
    private let limit: Int
    private var records = 0
    private var soundBytes = 0
    /// Those of them that are counted while they are in flight.
    private(set) var tally = InFlight.Tally()

    /// `limit`: of records, segments included.
    init(limit: Int) { self.limit = limit }

    var isEmpty: Bool { jobs.isEmpty }

    /// False when it is full: the record is not held then.
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
            // Without it the segments that are held could not be told apart.
            latestRun = OpenRun(run: run, next: 0)
        case .end:
            latestRun = nil
        case .work, .check, .purge, .limit, .commitInterval, .declare, .damaged, .stop:
            return true
        }
        jobs.append(job)
        return true
    }

    /// Empties it, and returns what it held, which is to be written again.
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

    /// What is lost if none of them will ever be written; the givers of `put` are told themselves.
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

    /// All of them are on the disk.
    mutating func clear() {
        jobs.removeAll(keepingCapacity: jobs.capacity < 4096)
        records = 0
        soundBytes = 0
        tally = .init()
        openRun = latestRun
    }
}

/// Segments of one run that will never be written, and those between them for which there was no room.
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

    /// By then the run has had so many segments.
    mutating func hear(until end: Int64, at moment: Stamp) {
        guard end > next else { return }
        count += end - next
        next = end
        from = from ?? moment
        to = moment
    }

    /// As the chunks that they would have made.
    var loss: Loss? {
        guard count > 0, let from, let to else { return nil }
        let chunks = run?.chunks(of: count) ?? count
        return Loss(.dropped, .audio, records: chunks, from: from, to: to)
    }
}

extension Job {
    /// What is lost with it: itself, and what it tells of, which nobody else would enter.
    var losses: [Loss] {
        guard case .row(let row) = self else { return [loss].compactMap { $0 } }
        return [loss, row.loss].compactMap { $0 }
    }

    /// Itself, if it is a record; of sound the writer sees the hole.
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
