// The writer's loop: records in as they come, a commit an interval, and again after a failure.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

/// Takes jobs from the mailbox and gives them to the writer.
///
/// The records of the open transaction stay in memory until it is committed. When the disk refuses, the
/// transaction is rolled back and they are written again later; what memory cannot hold is counted. Has no
/// thread of its own: `run` is for one, `turn` for whoever turns it by hand.
final class WriterLoop {
    let core: QueueCore
    let maintenance: Maintenance
    var settings: QueueSettings { core.settings }
    /// nil while no database can be opened.
    var writer: Writer?
    var quota: Quota
    var backlog: Backlog
    /// Those who wait until what they gave is on the disk.
    var waiting: [@Sendable ((any Error)?) -> Void] = []
    var userStreams: [DeclaredStream]
    private var commitInterval: Duration
    /// Set while the disk refuses: when to try again.
    var retryAt: BootInstant?
    var failures = 0
    /// What it refused last, another program has.
    var isHeld = false
    /// How often in a row there was no room.
    var fulls = 0
    /// Databases that were set aside since a commit succeeded.
    var replacements = 0
    /// The files that the writer has open: its database and the journal of it.
    var files: (database: FileIdentity?, journal: FileIdentity?) = (nil, nil)
    /// Where the last database that was open was to be set aside.
    var marked: String?
    var publishedAt: BootInstant?
    /// Something was committed since the storage was looked at.
    var isNew = true
    /// What was uploaded that long ago is being deleted.
    var purging: Duration?
    var isRunning = true
    var jobs: [Job] = []

    private init(_ core: QueueCore, _ maintenance: Maintenance) {
        self.core = core
        self.maintenance = maintenance
        quota = Quota(core.settings)
        backlog = Backlog(limit: core.settings.memoryLimit)
        userStreams = core.settings.userStreams
        commitInterval = core.settings.commitInterval
    }

    /// Opens the database; a disk that refuses is waited for.
    ///
    /// Throws for what time will not mend.
    static func open(_ core: QueueCore, _ maintenance: Maintenance) throws -> WriterLoop {
        let loop = WriterLoop(core, maintenance)
        do {
            try DatabaseFile.refuseHeld(core.settings)
            loop.begin(try DatabaseFile.open(core.settings, loop.userStreams))
            core.storage.loaded(StorageReport(path: core.settings.path))
        } catch let error as SQLiteError where error.isDisk || error.isBusy {
            loop.refused(error)
        } catch let error as SystemError {
            loop.refused(error)
        }
        return loop
    }

    /// Runs until it is told to stop.
    func run() {
        while isRunning {
            core.life.enters("pthread_cond_wait", for: delay)
            core.mailbox.takeAll(into: &jobs, timeout: delay)
            core.life.enters("SQLite")
            handleAll()
        }
        core.life.ends()
    }

    /// Does what there is to do now, without waiting.
    func turn() {
        guard isRunning else { return }
        core.mailbox.takeAll(into: &jobs, timeout: .zero)
        handleAll()
    }

    private func handleAll() {
        for job in jobs { handle(job) }
        jobs.removeAll(keepingCapacity: true)
        settle(force: !isRunning)
        guard !isRunning else { return }
        // What was made room for is written before the end.
        while let retryAt, retryAt <= settings.clock.now() { settle(force: true) }
        end()
    }

    /// How long the mailbox may be waited for.
    var delay: Duration? {
        if let retryAt { return max(.zero, retryAt - settings.clock.now()) }
        if quota.isBehind || purging != nil { return .milliseconds(1) }
        return writer?.commitDelay(interval: commitInterval)
    }

    /// Whether nothing that was taken or counted waits for the disk.
    var isAllOnDisk: Bool {
        // Marks between segments may wait for the next record.
        writer.map { $0.commitDelay(interval: .zero) == nil } ?? false
            && waiting.isEmpty && retryAt == nil
            && core.mailbox.count == 0 && core.losses.withLock { $0.isEmpty }
    }

    private func handle(_ job: Job) {
        switch job {
        case .stop: isRunning = false
        case .work(let work): perform(work)
        case .check:
            // Not while the disk refuses: one more refusal would put off the next try each time.
            guard retryAt == nil, !replaceMovedFile() else { break }
            attempt { try $0.tellLosses(atOnce: false) }
            keep(force: true)
        case .purge(let retention): purging = retention
        case .limit(let limits):
            quota.limits = limits
            keep(force: true)
        case .commitInterval(let interval): commitInterval = interval
        case .declare(let streams): declare(streams)
        case .damaged(let message, let generation):
            if generation == core.generation.load(ordering: .acquiring) { replace(message) }
        default: take(job)
        }
    }

    /// A record, or a mark between segments of sound.
    private func take(_ job: Job) {
        // There was no room for the one before, and now there is.
        if let retryAt, settings.clock.now() >= retryAt { retry() }
        guard hold(job) else {
            core.losses.withLock { $0.hold(job.losses) }
            if let loss = job.loss { core.inFlight.settled(loss) }
            if case .put(_, let done) = job { done(QueueFull()) }
            return
        }
        write(job)
    }

    /// Writes a record that is held.
    private func write(_ job: Job) {
        if case .put(_, let done) = job { waiting.append(done) }
        if retryAt == nil { attempt { try $0.insert(job) } }
        // A transaction is the least that the journal can be: with its share of a small limit, a short one.
        guard retryAt == nil, writer?.openBytes ?? 0 > quota.limits.journal / 2 else { return }
        if commit() { succeeded() }
    }

    /// So much in one interval is committed early: while the disk takes it, nothing is given up.
    private func hold(_ job: Job) -> Bool {
        if backlog.hold(job) { return true }
        if retryAt == nil { commit() }
        return retryAt == nil && backlog.hold(job)
    }

    private func declare(_ streams: [DeclaredStream]) {
        userStreams = streams
        guard retryAt == nil, commit() else { return }
        attempt { try $0.declare(user: streams) }
        commit()
    }

    /// What a caller wants done: committed, or undone, before the caller hears of it.
    private func perform(_ work: Work) {
        // Nothing else may be open, for what is wanted may be undone: a try that fails may leave records to be
        // written to another database.
        guard commitNow() || commitNow(), let writer else { return work.finish(work.run(nil)) }
        var failure = work.run(writer)
        do {
            if failure == nil {
                try commitOpen(writer)
                core.books.committed(writer)
            } else {
                try writer.rollback()
            }
        } catch {
            failure = failure ?? error
        }
        isNew = true
        work.finish(failure)
        if let failure = failure as? SQLiteError,
            failure.isDisk || failure.isDamage || failure.isBusy
        {
            refused(failure)
        }
    }

    /// Commits what there is, if the disk may be asked now.
    ///
    /// A caller may have read another file that was put in the database's place: what it wants is not for this one.
    private func commitNow() -> Bool {
        if let retryAt, settings.clock.now() >= retryAt { retry() }
        if retryAt == nil { replaceMovedFile(ifAnotherIsThere: true) }
        return retryAt == nil && commit()
    }

    /// Commits what is open, with the losses that go with it; false when the disk refused.
    @discardableResult private func commit() -> Bool {
        let (losses, turn) = core.losses.withLock { ($0.take(), $0.turn) }
        let isDone = attempt { writer in
            for loss in losses { try writer.note(loss) }
            if !losses.isEmpty { core.memos.set(LossTransactionID.memo, core.turn(turn).text) }
            try commitOpen(writer)
        }
        guard isDone else { return false }
        core.inFlight.settled(backlog.tally)
        if let writer { core.books.committed(writer) }
        core.losses.withLock { $0.entered() }
        backlog.clear()
        for done in waiting { done(nil) }
        waiting.removeAll()
        isNew = true
        return true
    }

    /// Commits with the memos that waited for a commit; at the end they have one of their own.
    private func commitOpen(_ writer: Writer) throws {
        if let end = writer.memory.soundEnd, end != writer.committed.soundEnd {
            core.memos.set(SoundEnd.memo, SoundEnd.text(end, boot: settings.bootID))
        }
        let memos = writer.isOpen || !isRunning ? core.memos.unwritten : [:]
        try writer.note(memos: memos)
        try writer.commit()
        core.memos.written(memos)
    }

    /// Commits when it is time, or tries again what the disk refused.
    private func settle(force: Bool) {
        let now = settings.clock.now()
        if let retryAt {
            guard now >= retryAt || force else { return }
            retry()
        }
        guard retryAt == nil else { return }
        let delay = writer?.commitDelay(interval: commitInterval) ?? nil
        let isDue = delay.map { $0 <= .zero || force } ?? false
        let hasLosses = core.losses.withLock { !$0.isEmpty }
        let isTelling = force && writer?.memory.untold ?? false
        let isEnd = !isRunning && !core.memos.unwritten.isEmpty
        if isDue || hasLosses || isTelling || failures > 0 || !waiting.isEmpty || isEnd {
            guard attempt({ try $0.tellLosses(atOnce: force) }), commit() else { return }
            succeeded()
        }
        purge(since: now)
        if isNew || quota.isBehind { keep(force: false) }
    }

    /// Deletes records whose retention is over, for 200 ms at most; the rest waits for the next turn.
    private func purge(since now: BootInstant) {
        guard let retention = purging, retryAt == nil else { return }
        repeat {
            var isDue = false
            guard attempt({ isDue = try $0.purge(retention: retention) }), isDue else {
                purging = nil
                return
            }
            guard commit() else { return }
        } while settings.clock.now() - now < .milliseconds(200) && !settings.isTurnedByHand
    }

    private func retry() {
        retryAt = nil
        // A file that was replaced, or a disk that came back, needs a connection of its own.
        if failures >= 3 && !isHeld || writer == nil { return reopen() }
        // Writing something that changes nothing shows whether the disk takes anything.
        let isBack = attempt { writer in
            try writer.begin()
            try writer.connection.execute("UPDATE database SET generation=generation")
            // What was declared meanwhile, or as it failed.
            try writer.declare(user: userStreams)
        }
        if isBack { insertBacklog() }
    }

    /// Writes what is held, with commits between: as one transaction it may be more than there is room for.
    func insertBacklog() {
        waiting.removeAll()
        resumeRun()
        for job in backlog.takeAll() {
            _ = backlog.hold(job)
            write(job)
        }
    }

    // MARK: Storage

    private func keep(force: Bool) {
        // The quota commits: what is open by then would be written again after a later failure.
        guard retryAt == nil, commit(), let writer else { return }
        isNew = false
        do {
            // Some steps of it may be on the disk, whatever comes of the rest.
            defer { core.books.committed(writer) }
            try quota.keep(writer, force: force)
        } catch {
            return refused(error)
        }
        let isHeld = quota.soundIsHeld
        if isHeld != core.soundIsHeld.load(ordering: .relaxed) {
            core.soundIsHeld.store(isHeld, ordering: .relaxed)
            if isHeld { attempt { try $0.cutRun() } }
        }
        publish()
    }

    private func publish() {
        let now = settings.clock.now()
        let isNews: Bool
        if case .loaded(let report) = core.storage.state {
            isNews =
                report.level != quota.report.level
                || report.detail.isEmpty != quota.report.detail.isEmpty
        } else {
            isNews = true
        }
        if let publishedAt, now - publishedAt < .seconds(10), !isNews { return }
        publishedAt = now
        core.storage.loaded(quota.report)
    }
}
