// The writer's thread: records in as they come, a commit an interval, and again after a failure.
internal import Board
internal import Host

/// Takes jobs from the mailbox and gives them to the writer.
///
/// The records of the open transaction stay in memory until it is committed. When the disk refuses, the
/// transaction is rolled back and they are written again later: nothing that was accepted is forgotten.
struct WriterLoop {
    private let writer: Writer
    private let mailbox: Mailbox<Job>
    private let storage: Publisher<String>
    private let settings: QueueSettings
    /// Records since the last commit.
    private var uncommitted: [Job] = []
    /// Set while the disk refuses: when to try again.
    private var retryAt: BootInstant?
    private var failures = 0

    init(
        writer: Writer,
        mailbox: Mailbox<Job>,
        storage: Publisher<String>,
        settings: QueueSettings
    ) {
        self.writer = writer
        self.mailbox = mailbox
        self.storage = storage
        self.settings = settings
    }

    consuming func run() {
        var loop = self
        var jobs: [Job] = []
        var isRunning = true
        while isRunning {
            loop.mailbox.takeAll(into: &jobs, timeout: loop.delay)
            for job in jobs where !loop.handle(job) { isRunning = false }
            loop.settle(now: loop.settings.clock.now(), force: !isRunning)
        }
    }

    /// How long the mailbox may be waited for.
    private var delay: Duration? {
        if let retryAt { return max(.zero, retryAt - settings.clock.now()) }
        return writer.commitDelay(interval: settings.commitInterval)
    }

    /// False for the job that ends the loop.
    private mutating func handle(_ job: Job) -> Bool {
        switch job {
        case .stop:
            return false
        case .work(let body):
            // Its changes and all before it go to the disk together.
            attempt { writer in
                body(writer)
                try writer.commit()
            }
            if retryAt == nil { uncommitted.removeAll(keepingCapacity: true) }
        default:
            keep(job)
            if retryAt == nil { attempt { try $0.insert(job) } }
        }
        return true
    }

    /// Remembers a record until it is committed; bounded like the mailbox.
    private mutating func keep(_ job: Job) {
        if uncommitted.count < Queue.mailboxLimit { uncommitted.append(job) }
    }

    /// Commits when it is time, or tries again what the disk refused.
    private mutating func settle(now: BootInstant, force: Bool) {
        if let retryAt {
            guard now >= retryAt || force else { return }
            self.retryAt = nil
            for job in uncommitted where self.retryAt == nil { attempt { try $0.insert(job) } }
        }
        guard retryAt == nil, let delay = writer.commitDelay(interval: settings.commitInterval),
            delay <= .zero || force || failures > 0
        else { return }
        attempt { try $0.commit() }
        guard retryAt == nil else { return }
        uncommitted.removeAll(keepingCapacity: true)
        guard failures > 0 else { return }
        failures = 0
        storage.loaded(settings.path)
    }

    private mutating func attempt(_ body: (Writer) throws -> Void) {
        do {
            try body(writer)
        } catch {
            failures += 1
            try? writer.rollback()
            let isFull = (error as? SQLiteError)?.isFull ?? false
            storage.failed(
                Failure(
                    "\(settings.path): \(error)"
                        + (isFull
                            ? "; free some space, collection goes on when there is room" : ""),
                    code: isFull ? .storageFull : nil
                )
            )
            // 1, 2, 4 … 30 s: a failing card must not be hammered.
            retryAt = settings.clock.now() + .seconds(min(30, 1 << min(failures - 1, 5)))
        }
    }
}

extension Writer {
    fileprivate func insert(_ job: Job) throws {
        switch job {
        case .sighting(let sighting): try insert(sighting)
        case .fix(let fix): try insert(fix)
        case .event(let event): try insert(event)
        case .begin(let run): try begin(run)
        case .segment(let segment): try insert(segment)
        case .end: try endRun()
        case .work, .stop: break
        }
    }
}
