// Records that the disk does not have yet: those of the open transaction, and all while it refuses.

/// Records in order, bounded in number and in bytes of sound.
struct Backlog {
    /// Sound held in memory while the disk refuses: half an hour at 24 kb/s.
    static let soundLimit = 6 << 20

    private(set) var jobs: [Job] = []
    /// The run of sound that was open before the first of them: their segments may belong to it.
    private(set) var openRun: AudioRun?
    private var latestRun: AudioRun?
    private var records = 0
    private var soundBytes = 0

    /// False when it is full: the record is not held then.
    mutating func hold(_ job: Job) -> Bool {
        switch job {
        case .segment(let segment):
            guard soundBytes + segment.data.count <= Self.soundLimit, records < Queue.mailboxLimit
            else { return false }
            soundBytes += segment.data.count
            records += 1
        case .sighting, .fix, .event, .place:
            guard records < Queue.mailboxLimit else { return false }
            records += 1
        case .begin(let run):
            // Without it the segments that are held could not be told apart.
            latestRun = run
        case .end:
            latestRun = nil
        case .work, .check, .limit, .damaged, .stop:
            return true
        }
        jobs.append(job)
        return true
    }

    mutating func clear() {
        jobs.removeAll(keepingCapacity: jobs.capacity < 4096)
        records = 0
        soundBytes = 0
        openRun = latestRun
    }
}

extension Job {
    /// What is lost with it, if it is a record.
    var loss: Loss? {
        switch self {
        case .sighting(let sighting):
            Loss(.dropped, .beacons, records: 1, from: sighting.stamp, to: sighting.stamp)
        case .fix(let fix): Loss(.dropped, .location, records: 1, from: fix.stamp, to: fix.stamp)
        case .event(let event):
            Loss(.dropped, .events, records: 1, from: event.stamp, to: event.stamp)
        case .segment(let segment):
            Loss(.dropped, .audio, records: 1, from: segment.start, to: segment.start)
        case .place, .begin, .end, .work, .check, .limit, .damaged, .stop: nil
        }
    }
}
