// The writer's thread: records in as they come, a commit an interval, and again after a failure.
internal import Board
internal import Host
internal import Synchronization

/// Takes jobs from the mailbox and gives them to the writer.
///
/// The records of the open transaction stay in memory until it is committed. When the disk refuses, the
/// transaction is rolled back and they are written again later; what memory cannot hold is counted.
struct WriterLoop {
    private let core: QueueCore
    private let caretaker: Caretaker
    private var settings: QueueSettings { core.settings }
    /// nil while no database can be opened.
    private var writer: Writer?
    private var keeper: StorageKeeper
    private var backlog = Backlog()
    /// Losses to be entered with the next commit.
    private var losses = LossTally()
    /// Set while the disk refuses: when to try again.
    private var retryAt: BootInstant?
    private var failures = 0
    private var publishedAt: BootInstant?
    /// Something was committed since the storage was looked at.
    private var isNew = true

    init(writer: Writer?, core: QueueCore, caretaker: Caretaker) {
        self.writer = writer
        self.core = core
        self.caretaker = caretaker
        keeper = StorageKeeper(core.settings)
    }

    consuming func run() {
        var loop = self
        var jobs: [Job] = []
        var isRunning = true
        while isRunning {
            loop.core.mailbox.takeAll(into: &jobs, timeout: loop.delay)
            for job in jobs where !loop.handle(job) { isRunning = false }
            loop.settle(force: !isRunning)
        }
        loop.refuseWhatIsLeft()
    }

    /// How long the mailbox may be waited for.
    private var delay: Duration? {
        if let retryAt { return max(.zero, retryAt - settings.clock.now()) }
        if keeper.isBehind { return .milliseconds(1) }
        return writer?.commitDelay(interval: settings.commitInterval)
    }

    /// False for the job that ends the loop.
    private mutating func handle(_ job: Job) -> Bool {
        switch job {
        case .stop:
            return false
        case .work(let work):
            perform(work)
        case .check:
            // Not while the disk refuses: one more refusal would put off the next try each time.
            guard retryAt == nil else { break }
            attempt { try $0.tellLosses(atOnce: false) }
            keep(force: true)
        case .limit(let limits):
            keeper.limits = limits
            keep(force: true)
        case .damaged(let words, let epoch):
            if epoch == core.epoch.load(ordering: .acquiring) { replace(words) }
        default:
            guard hold(job) else {
                if let loss = job.loss { losses.add(loss) }
                return true
            }
            if retryAt == nil { attempt { try $0.insert(job) } }
            // A transaction is the least that the journal can be: with its share of a small limit, a short one.
            if retryAt == nil, writer?.openBytes ?? 0 > keeper.limits.journal / 2 { commit() }
        }
        return true
    }

    /// So much in one interval is committed early: while the disk takes it, nothing is given up.
    private mutating func hold(_ job: Job) -> Bool {
        if backlog.hold(job) { return true }
        if retryAt == nil { commit() }
        return retryAt == nil && backlog.hold(job)
    }

    /// What a caller wants done: committed, or undone, before the caller hears of it.
    private mutating func perform(_ work: Work) {
        if retryAt == nil { commit() }
        guard let writer else {
            return work.finish(work.run(nil))
        }
        var failure = work.run(writer)
        do {
            if failure == nil {
                try writer.commit()
            } else {
                try writer.rollback()
            }
        } catch {
            failure = failure ?? error
        }
        work.finish(failure)
        if let failure = failure as? SQLiteError, failure.isDisk || failure.isDamage {
            refused(failure)
        }
    }

    /// Commits what is open, with the losses that go with it.
    private mutating func commit() {
        losses.add(core.losses.withLock { $0.take() })
        let losses = losses.all
        attempt { writer in
            for loss in losses { try writer.note(loss) }
            try writer.commit()
        }
        guard retryAt == nil else { return }
        self.losses = LossTally()
        backlog.clear()
        isNew = true
    }

    /// Commits when it is time, or tries again what the disk refused.
    private mutating func settle(force: Bool) {
        let now = settings.clock.now()
        if let retryAt {
            guard now >= retryAt || force else { return }
            retry()
        }
        guard retryAt == nil else { return }
        let delay = writer?.commitDelay(interval: settings.commitInterval) ?? nil
        let isDue = delay.map { $0 <= .zero || force } ?? false
        let hasLosses = !losses.isEmpty || core.losses.withLock { !$0.isEmpty }
        let isTelling = force && writer?.untold ?? false
        if isDue || hasLosses || isTelling || failures > 0 {
            attempt { try $0.tellLosses(atOnce: force) }
            if retryAt == nil { commit() }
            guard retryAt == nil else { return }
            failures = 0
        }
        if isNew || keeper.isBehind { keep(force: false) }
    }

    private mutating func retry() {
        retryAt = nil
        // A file that was replaced, or a disk that came back, needs a connection of its own.
        if failures >= 3 || writer == nil { reopen() }
        guard retryAt == nil else { return }
        // Writing something that changes nothing shows whether the disk takes anything.
        attempt { writer in
            try writer.begin()
            try writer.connection.execute("UPDATE database SET generation=generation")
        }
        if retryAt == nil { insertBacklog() }
    }

    private mutating func insertBacklog() {
        let jobs = backlog.jobs
        attempt { writer in
            for job in jobs { try writer.insert(job) }
        }
    }

    // MARK: Storage

    private mutating func keep(force: Bool) {
        guard retryAt == nil, let writer else { return }
        // The keeper commits: what is open by then would be written again after a later failure.
        commit()
        guard retryAt == nil else { return }
        isNew = false
        do {
            try keeper.keep(writer, force: force)
        } catch {
            return refused(error)
        }
        let isHeld = keeper.soundIsHeld
        if isHeld != core.soundIsHeld.load(ordering: .relaxed) {
            core.soundIsHeld.store(isHeld, ordering: .relaxed)
            // What was recorded so far is a chunk, if a short one.
            if isHeld { attempt { try $0.endRun() } }
        }
        publish()
    }

    private mutating func publish() {
        let now = settings.clock.now()
        let isNews: Bool
        if case .loaded(let report) = core.storage.state {
            isNews =
                report.level != keeper.report.level
                || report.detail.isEmpty != keeper.report.detail.isEmpty
        } else {
            isNews = true
        }
        if let publishedAt, now - publishedAt < .seconds(10), !isNews { return }
        publishedAt = now
        core.storage.loaded(keeper.report)
    }

    // MARK: Failures

    /// 1, 2, 4, 8 s: a failing card must not be hammered, and one that is back is wanted soon.
    private static func pause(after failures: Int) -> Duration {
        .seconds(1 << min(max(0, failures - 1), 3))
    }

    private mutating func attempt(_ body: (Writer) throws -> Void) {
        guard let writer else { return refused(QueueClosed()) }
        do {
            try body(writer)
        } catch {
            refused(error)
        }
    }

    /// The disk, or the database, did not take it: everything since the last commit is to be written again.
    mutating func refused(_ error: any Error) {
        failures += 1
        try? writer?.rollback()
        let sqlite = error as? SQLiteError
        if sqlite?.isDamage == true { return replace("\(error)") }
        let isFull = sqlite?.isFull ?? false
        var delay = Self.pause(after: failures)
        if isFull {
            delay = .seconds(1)
            if let writer, failures <= 3, makeRoom(writer) { delay = .zero }
            core.soundIsHeld.store(keeper.soundIsHeld, ordering: .relaxed)
        }
        retryAt = settings.clock.now() + delay
        guard !isFull || failures > 3 || delay > .zero else { return }
        core.storage.failed(
            Failure(
                "\(settings.path): \(error); records wait in memory"
                    + (isFull ? ": free some space" : ": look at the disk"),
                code: isFull ? .storageFull : nil
            )
        )
    }

    private mutating func makeRoom(_ writer: Writer) -> Bool {
        do {
            return try keeper.makeRoom(writer)
        } catch {
            // Half an eviction must not stay open: SQLite may have ended it without our knowing.
            try? writer.rollback()
            return false
        }
    }

    private mutating func reopen() {
        do {
            // The old connection goes last: as long as one is there, the journal's index is as of the last
            // commit, and a transaction that failed as it was synced is not found in the journal again.
            let database = try DatabaseFile.open(settings)
            writer?.connection.keepJournal()
            begin(database)
        } catch {
            refused(error)
        }
    }

    private mutating func begin(_ database: DatabaseFile.Opened) {
        writer = database.writer
        keeper.forgetConnection()
        core.epoch.wrappingAdd(1, ordering: .acquiringAndReleasing)
        core.opened(database, caretaker: caretaker)
        retryAt = nil
        if let run = backlog.openRun { attempt { try $0.begin(run) } }
    }

    /// Sets the damaged database aside and goes on with a new one.
    private mutating func replace(_ words: String) {
        do {
            writer?.connection.keepJournal()
            writer = nil
            try DatabaseFile.moveAside(settings)
            begin(try DatabaseFile.open(settings))
            insertBacklog()
        } catch {
            failures += 1
            retryAt = settings.clock.now() + Self.pause(after: failures)
            core.storage.failed(Failure("\(settings.path): \(error); \(words)"))
        }
    }

    /// Callers that came after the end must not wait for ever.
    private func refuseWhatIsLeft() {
        var jobs: [Job] = []
        core.mailbox.takeAll(into: &jobs, timeout: .zero)
        for case .work(let work) in jobs { work.finish(QueueClosed()) }
    }
}

extension Writer {
    fileprivate func insert(_ job: Job) throws {
        switch job {
        case .sighting(let sighting): try insert(sighting)
        case .fix(let fix): try insert(fix)
        case .event(let event): try insert(event)
        case .place(let fix): try insert(place: fix)
        case .begin(let run): try begin(run)
        case .segment(let segment): try insert(segment)
        case .end: try endRun()
        case .work, .check, .limit, .damaged, .stop: break
        }
    }
}
