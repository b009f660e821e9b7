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
    /// Owns this loop when it is driven by hand.
    unowned let queue: Queue
    var settings: QueueSettings { queue.settings }
    /// nil while no database can be opened.
    var writer: Writer?
    var quota: Quota
    var backlog: Backlog
    /// Completion handlers of `put` calls that wait for a commit.
    var waiting: [@Sendable ((any Error)?) -> Void] = []
    var userStreams: [DeclaredStream]
    var commitInterval: Duration
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
    /// When each source was listening.
    var effort = EffortBook()
    /// The accounts of the process before were looked for.
    var hasEffort = false
    /// Records are written that were held during an outage.
    private(set) var isReplaying = false

    private init(_ queue: Queue) {
        self.queue = queue
        quota = Quota(queue.settings)
        backlog = Backlog(limit: queue.settings.memoryLimit)
        userStreams = queue.settings.userStreams
        commitInterval = queue.settings.commitInterval
    }

    /// Opens the database; retries later if the disk fails.
    ///
    /// Throws for errors that a retry cannot fix.
    static func open(_ queue: Queue) throws -> WriterLoop {
        let loop = WriterLoop(queue)
        do {
            try DatabaseFile.refuseHeld(queue.settings)
            loop.begin(try DatabaseFile.open(queue.settings, loop.userStreams))
            queue.storage.loaded(StorageReport(path: queue.settings.path))
        } catch let error as SQLiteError where error.isDisk || error.isBusy {
            loop.refused(error)
        } catch let error as SystemError {
            loop.refused(error)
        }
        return loop
    }

    /// Runs until a command ends it.
    func run() {
        while isRunning {
            queue.life.enters("pthread_cond_wait", for: delay)
            queue.mailbox.takeAll(into: &jobs, timeout: delay)
            queue.life.enters("SQLite")
            handleAll()
        }
        queue.life.ends()
    }

    /// Does the pending work without waiting.
    func turn() {
        guard isRunning else { return }
        queue.mailbox.takeAll(into: &jobs, timeout: .zero)
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
            && queue.mailbox.count == 0 && queue.unrecorded.withLock { $0.isEmpty }
    }

    private func handle(_ job: Job) {
        switch job {
        case .record(let record): store(record)
        case .work(let work): perform(work)
        case .command(let command): command(self)
        }
    }

    // MARK: Records

    /// Holds a record in memory and writes it; counts it as lost if memory is full.
    private func store(_ record: QueuedRecord) {
        // The previous record did not fit; there may be space now.
        if let retryAt, settings.clock.now() >= retryAt { retry() }
        // Posted before the disk was full.
        if quota.isFull, case .put(let rows, _, let done) = record,
            !rows.allSatisfy(\.isOfTheProgram)
        {
            return done(queue.fullRefusal ?? QueueFullError())
        }
        var isHeld = backlog.hold(record)
        if !isHeld, retryAt == nil {
            // Commit early, so that no record is lost.
            commit()
            isHeld = retryAt == nil && backlog.hold(record)
        }
        guard isHeld else {
            queue.unrecorded.withLock { $0.add(record.losses()) }
            if let loss = record.loss() { queue.inFlightCount.settled(loss) }
            if case .put(_, _, let done) = record { done(QueueFullError()) }
            return
        }
        write(record)
    }

    /// Writes a record that the backlog already holds.
    private func write(_ record: QueuedRecord) {
        if case .put(_, let memos, let done) = record {
            waiting.append(done)
            // An older text of `remember` must not replace one of these at the commit.
            queue.memos.areStored(memos, isCommitted: false)
        }
        if retryAt == nil { attempt { try $0.insert(record) } }
        // The WAL holds a whole transaction: if its limit is small, keep transactions short.
        guard retryAt == nil, writer?.openBytes ?? 0 > quota.limits.journal / 2 else { return }
        if commit() { succeeded() }
    }

    /// Runs `body` on the writer; returns false if it failed.
    ///
    /// By then a retry is scheduled or another database is open.
    @discardableResult func attempt(_ body: (Writer) throws -> Void) -> Bool {
        guard let writer else {
            refused(QueueClosedError())
            return false
        }
        do {
            try body(writer)
            return true
        } catch {
            refused(error)
            return false
        }
    }

    // MARK: Commands

    /// Checks the storage.
    func check() {
        // Skipped while the disk fails: each further error would postpone the next retry.
        guard retryAt == nil, !replaceMovedFile() else { return }
        attempt { try $0.reportLosses(atOnce: false) }
        keep(force: true)
    }

    func limit(_ limits: StorageLimits) {
        quota.limits = limits
        keep(force: true)
    }

    /// Handles damage that was found in the database of a generation.
    func damaged(_ message: String, generation: Int) {
        if generation == queue.generation { replace(message) }
    }

    func declare(_ streams: [DeclaredStream]) {
        userStreams = streams
        guard retryAt == nil, commit() else { return }
        attempt { try $0.declare(user: streams) }
        commit()
    }

    /// Runs a caller's work and commits or rolls it back before the caller is answered.
    private func perform(_ work: any Work) {
        // Commit everything else first, because the work may be rolled back. Try twice: a failed
        // attempt may leave records that must be written to another database.
        guard commitNow() || commitNow(), let writer else { return work.finish(QueueClosedError()) }
        mustHold(!writer.isOpen && backlog.held.isEmpty, "work undoes no record")
        var failure: (any Error)?
        do {
            do { try work.run(writer) } catch {
                try? writer.rollback()
                throw error
            }
            try commitOpen(writer)
            queue.counters.committed(writer)
        } catch {
            failure = error
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
        let (losses, turn) = queue.unrecorded.withLock { ($0.take(), $0.turn) }
        let isDone = attempt { writer in
            for loss in losses { try writer.record(loss) }
            if !losses.isEmpty {
                queue.memos.set(LossTransactionID.memo, queue.lossTransaction(turn).text)
            }
            try commitOpen(writer)
        }
        guard isDone else { return false }
        mustHold(writer.map { !$0.isOpen } ?? false, "what is answered is committed")
        queue.inFlightCount.settled(backlog.tally)
        if let writer { queue.counters.committed(writer) }
        queue.unrecorded.withLock { $0.entered() }
        backlog.clear()
        for done in waiting { done(nil) }
        waiting.removeAll()
        isNew = true
        return true
    }

    /// Commits with the pending memos; at shutdown they get a commit even if nothing else is open.
    private func commitOpen(_ writer: Writer) throws {
        if let end = writer.memory.soundEnd, end != writer.committed.soundEnd {
            queue.memos.set(AudioEnd.memo, AudioEnd.text(end, boot: settings.bootID))
        }
        let isWriting = writer.isOpen || !isRunning
        let effort = isWriting ? try writeEffort(writer) : effort
        let memos = isWriting ? queue.memos.unwritten : [:]
        try writer.record(memos: memos)
        try writer.commit()
        queue.memos.written(memos)
        self.effort = effort
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
        let hasLosses = queue.unrecorded.withLock { !$0.isEmpty }
        let isTelling = force && writer?.memory.unreported ?? false
        let isEnd = !isRunning && (effort.isChanged || !queue.memos.unwritten.isEmpty)
        if isDue || hasLosses || isTelling || failures > 0 || !waiting.isEmpty || isEnd {
            guard attempt({ try $0.reportLosses(atOnce: force) }), commit() else { return }
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
            try writer.soundChanged()
            try continueEffort(writer)
        }
        if isBack { insertBacklog() }
    }

    /// Writes the backlog with commits in between, because one transaction may not fit on the disk.
    func insertBacklog() {
        waiting.removeAll()
        resumeRun()
        isReplaying = true
        defer { isReplaying = false }
        for record in backlog.takeAll() {
            let isHeld = backlog.hold(record)
            invariant(isHeld, "memory has room for what it held")
            write(record)
        }
    }

    // MARK: Storage

    private func keep(force: Bool) {
        // The quota commits: open records would be written twice after a later failure.
        guard retryAt == nil, commit(), let writer else { return }
        isNew = false
        do {
            // Some steps may be on disk even if a later one fails.
            defer { queue.counters.committed(writer) }
            try quota.keep(writer, force: force)
        } catch {
            return refused(error)
        }
        refuseRecords()
        publish()
    }

    /// Refuses records for which there is no room, or accepts them again.
    func refuseRecords() {
        queue.isFull.store(quota.isFull, ordering: .relaxed)
        let isHeld = quota.soundIsHeld
        if isHeld != queue.soundIsHeld.exchange(isHeld, ordering: .relaxed), isHeld {
            attempt { try $0.cutRun() }
        }
    }

    private func publish() {
        let now = settings.clock.now()
        let isNews: Bool
        if case .loaded(let report) = queue.storage.state {
            isNews =
                report.level != quota.report.level || report.isFull != quota.isFull
                || report.detail.isEmpty != quota.report.detail.isEmpty
        } else {
            isNews = true
        }
        if let publishedAt, now - publishedAt < .seconds(10), !isNews { return }
        publishedAt = now
        queue.storage.loaded(quota.report)
    }
}

/// An element of the writer's mailbox.
enum Job: Sendable {
    case record(QueuedRecord)
    case work(any Work)
    /// A closure for the writer's thread, run between two records.
    case command(@Sendable (WriterLoop) -> Void)

    var record: QueuedRecord? {
        guard case .record(let record) = self else { return nil }
        return record
    }
}
