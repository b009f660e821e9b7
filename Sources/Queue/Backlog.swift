// Records that the disk does not have yet: those of the open transaction, and all while it refuses.
internal import Streams

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
        case .sighting, .row, .place:
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

    /// Gives what it holds to be held, and written, once more.
    mutating func takeAll() -> [Job] {
        defer {
            jobs = []
            records = 0
            soundBytes = 0
            latestRun = openRun
        }
        return jobs
    }

    /// What is lost if none of them will ever be written; the givers of `put` are told themselves.
    var losses: [Loss] {
        var tally = LossTally()
        var run = openRun?.run
        var (count, sound) = (Int64(0), Loss?.none)
        func endRun() {
            let share = Int64(max(1, (run?.chunkSegments ?? 1) - (run?.overlapSegments ?? 0)))
            sound?.records = (count + share - 1) / share
            if let sound { tally.add(sound) }
            (count, sound) = (0, nil)
        }
        for job in jobs {
            switch job {
            case .begin(let next):
                endRun()
                run = next
            case .segment(let segment):
                count += 1
                let from = sound?.from ?? segment.start
                sound = Loss(.dropped, .audio, records: 0, from: from, to: segment.start)
            default: if let loss = job.loss { tally.add(loss) }
            }
        }
        endRun()
        return tally.all
    }

    /// All of them are on the disk.
    mutating func clear() {
        jobs.removeAll(keepingCapacity: jobs.capacity < 4096)
        records = 0
        soundBytes = 0
        openRun = latestRun
    }
}

extension Job {
    /// What is lost with it, if it is a record; of sound the writer sees the hole.
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
        case .end(_, let count): try endRun(count: count)
        case .work, .check, .purge, .limit, .commitInterval, .declare, .damaged, .stop: break
        }
    }
}
