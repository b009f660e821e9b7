// The writer's loop: stores records, commits once per interval and retries after failures.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

/// Takes jobs from the mailbox and runs them on the writer.
///
/// Records of the open transaction stay in memory until it is committed. If the disk fails, the
/// loop rolls back and writes them again later; it counts records that memory cannot hold as lost.
/// Not thread-safe: one thread calls either `run` or, to drive it by hand, `turn`.
final class WriterLoop {
    let core: QueueCore
    let maintenance: Maintenance
    var settings: QueueSettings { core.settings }
    /// nil while no database can be opened.
    var writer: Writer?
    var quota: Quota
    var backlog: Backlog
    /// Completion handlers of `put` calls that wait for a commit.
    var waiting: [@Sendable ((any Error)?) -> Void] = []
    var userStreams: [DeclaredStream]
    private var commitInterval: Duration
    /// When to retry after a disk error; nil while the disk works.
    var retryAt: BootInstant?
    var failures = 0
    /// The last error was that another process holds the database.
    var isHeld = false
    /// Consecutive errors for lack of space.
    var fulls = 0
    /// Databases quarantined since the last successful commit.
    var replacements = 0
    /// The identities of the open database file and its WAL.
    var files: (database: FileIdentity?, journal: FileIdentity?) = (nil, nil)
    /// The path to which the last open database was to be moved as corrupt.
    var marked: String?
    var publishedAt: BootInstant?
    /// Something was committed since the last storage check.
    var isNew = true
    /// The retention of the purge in progress; nil if none is running.
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

    /// Opens the database; retries later if the disk fails.
    ///
    /// Throws for errors that a retry cannot fix.
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

    /// Runs until a `stop` job arrives.
    func run() {
        while isRunning {
            core.life.enters("pthread_cond_wait", for: delay)
            core.mailbox.takeAll(into: &jobs, timeout: delay)
            core.life.enters("SQLite")
            handleAll()
        }
        core.life.ends()
    }

    /// Does the pending work without waiting.
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
        // Records for which space was freed are written before the loop ends.
        while let retryAt, retryAt <= settings.clock.now() { settle(force: true) }
        end()
    }

    /// How long to wait for the mailbox; nil if there is no deadline.
    var delay: Duration? {
        if let retryAt { return max(.zero, retryAt - settings.clock.now()) }
        if quota.isBehind || purging != nil { return .milliseconds(1) }
        return writer?.commitDelay(interval: commitInterval)
    }

    /// Whether every accepted record and every counted loss is on disk.
    var isAllOnDisk: Bool {
        // Audio run boundaries may wait for the next record.
        writer.map { $0.commitDelay(interval: .zero) == nil } ?? false
            && waiting.isEmpty && retryAt == nil
            && core.mailbox.count == 0 && core.losses.withLock { $0.isEmpty }
    }

    private func handle(_ job: Job) {
        switch job {
        case .stop: isRunning = false
        case .work(let work): perform(work)
        case .check:
            // Skipped while the disk fails: each further error would postpone the next retry.
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

    /// Stores a record or an audio run boundary.
    private func take(_ job: Job) {
        // The previous record did not fit; there may be space now.
        if let retryAt, settings.clock.now() >= retryAt { retry() }
        guard hold(job) else {
            core.losses.withLock { $0.hold(job.losses) }
            if let loss = job.loss { core.inFlight.settled(loss) }
            if case .put(_, let done) = job { done(QueueFull()) }
            return
        }
        write(job)
    }

    /// Writes a record that the backlog already holds.
    private func write(_ job: Job) {
        if case .put(_, let done) = job { waiting.append(done) }
        if retryAt == nil { attempt { try $0.insert(job) } }
        // The WAL holds a whole transaction: if its limit is small, keep transactions short.
        guard retryAt == nil, writer?.openBytes ?? 0 > quota.limits.journal / 2 else { return }
        if commit() { succeeded() }
    }

    /// Adds a job to the backlog; when it is full, commits early so that no record is lost.
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

    /// Runs a caller's work and commits or rolls it back before the caller is answered.
    private func perform(_ work: Work) {
        // Commit everything else first, because the work may be rolled back. Try twice: a failed
        // attempt may leave records that must be written to another database.
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

    /// Commits the open transaction, unless the loop is waiting to retry after a disk error.
    ///
    /// First checks for a file that replaced the database: a caller may have read it, and its work
    /// must not change this one.
    private func commitNow() -> Bool {
        if let retryAt, settings.clock.now() >= retryAt { retry() }
        if retryAt == nil { replaceMovedFile(ifAnotherIsThere: true) }
        return retryAt == nil && commit()
    }

    /// Commits the open transaction with the pending losses; returns false if the disk failed.
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

    /// Commits with the pending memos; at shutdown they get a commit even if nothing else is open.
    private func commitOpen(_ writer: Writer) throws {
        if let end = writer.memory.soundEnd, end != writer.committed.soundEnd {
            core.memos.set(SoundEnd.memo, SoundEnd.text(end, boot: settings.bootID))
        }
        let memos = writer.isOpen || !isRunning ? core.memos.unwritten : [:]
        try writer.note(memos: memos)
        try writer.commit()
        core.memos.written(memos)
    }

    /// Commits when it is due, or retries after a disk error.
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

    /// Deletes records past their retention, for at most 200 ms; the next turn continues.
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
        // A replaced file, or a disk that came back, needs a new connection.
        if failures >= 3 && !isHeld || writer == nil { return reopen() }
        // A write that changes nothing shows whether the disk works again.
        let isBack = attempt { writer in
            try writer.begin()
            try writer.connection.execute("UPDATE database SET generation=generation")
            // Streams declared during the outage, or by the call that failed.
            try writer.declare(user: userStreams)
        }
        if isBack { insertBacklog() }
    }

    /// Writes the backlog with commits in between, because one transaction may not fit on the disk.
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
        // The quota commits: open records would be written twice after a later failure.
        guard retryAt == nil, commit(), let writer else { return }
        isNew = false
        do {
            // Some steps may be on disk even if a later one fails.
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
