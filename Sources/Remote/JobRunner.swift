// Does the server's jobs one after the other, each at most once.
package import Host
package import Queue
package import Records

/// Fetches the list when an answer offers a new one, and does and answers its jobs.
///
/// Lives on a thread of its own. Before a job is done, the memo that it was begun is on the disk;
/// its reply and the memo that it was answered are one transaction. A job that was begun and not
/// answered when the process ended is therefore answered as failed, and never done again.
package struct JobRunner {
    /// The most reports, and the most restarts, of one list: a report takes seconds and has up to
    /// 100 kB, and a restart is a gap in what a source records.
    private static let maxOfAKind = 4
    private static let tagMemo = "jobs tag"
    /// The time until a reply that could not be stored is tried again.
    private static let storePause = Duration.seconds(30)
    private static let interrupted = JobOutcome(
        .failed,
        "interrupted: the gateway ended before it was answered; it is not done again"
    )

    /// An answer that has to be stored.
    private struct Answer {
        var entry: JobHistory.Entry
        var reply: JobReply
    }

    private let queue: Queue
    private let clock: any HostClock
    private let gateway: any JobGateway
    private let offers: OfferedJobs
    private let commit: Commit
    private var history = JobHistory { _ in nil }
    /// They are stored before anything else is done, in this order.
    private var unstored: [Answer] = []
    private var askedAt: BootInstant?

    /// Stores a reply, if there is one, and memos in one transaction; returns whether they are on
    /// the disk.
    package typealias Commit = @Sendable (JobReply?, [String: String], StopSignal) -> Bool

    /// `commit`: nil for that of the queue's own thread.
    package init(
        _ queue: Queue,
        _ clock: any HostClock,
        _ offers: OfferedJobs,
        _ gateway: any JobGateway,
        commit: Commit? = nil
    ) {
        (self.queue, self.clock, self.gateway, self.offers) = (queue, clock, gateway, offers)
        self.commit = commit ?? { queue.commit($0, $1, until: $2) }
    }

    /// Handles offers until `stop` is raised; sleeps while there is none.
    package mutating func run(until stop: StopSignal) {
        // The memos are known as soon as a database is open.
        while queue.generation == 0 { if stop.sleep(for: .seconds(5)) { return } }
        restore()
        while !stop.isRaised {
            offers.wakeup.clear()
            let pause = turn(until: stop)
            var entries = [PollEntry(stop.descriptor), PollEntry(offers.wakeup.descriptor)]
            _ = stop.wait(for: &entries, timeout: pause)
        }
    }

    /// Reads what is stored; jobs that the end of the last process interrupted will be answered.
    package mutating func restore() {
        history = JobHistory { [queue] in queue.remembered($0) }
        if let tag = queue.remembered(Self.tagMemo) { offers.isHandled(tag) }
        for entry in history.interrupted { addAnswer(entry, entry.kind, Self.interrupted) }
    }

    /// Does what is due; returns how long to wait with the rest, nil: until the next offer.
    package mutating func turn(until stop: StopSignal) -> Duration? {
        guard storeAnswers(stop) else { return Self.storePause }
        guard let tag = offers.open, !gateway.remote.allow.isEmpty else { return nil }
        let (now, interval) = (clock.now(), gateway.interval)
        if let askedAt, now - askedAt < interval { return interval - (now - askedAt) }
        askedAt = now
        guard let bytes = gateway.fetch(until: stop) else { return nil }
        do {
            let list = try JobList(bytes)
            guard perform(list.jobs, stop) else { return Self.storePause }
            isHandled(list.tag)
        } catch {
            gateway.warn("the server's list of jobs is ignored: \(error)")
            isHandled(tag)
        }
        return nil
    }

    private func isHandled(_ tag: String) {
        offers.isHandled(tag)
        queue.remember(Self.tagMemo, tag)
    }

    /// Does and answers the jobs that are new; false if that ended early.
    private mutating func perform(_ jobs: [RemoteJob], _ stop: StopSignal) -> Bool {
        var (counts, isAnswered) = ([String: Int](), false)
        defer { if isAnswered { gateway.uploadReplies() } }
        for job in jobs where !history.contains(job.id) {
            counts[job.kind, default: 0] += 1
            let isOneTooMany =
                ["report", "restart"].contains(job.kind)
                && counts[job.kind] ?? 0 > Self.maxOfAKind
            guard !stop.isRaised, perform(job, isOneTooMany: isOneTooMany, stop) else {
                return false
            }
            isAnswered = true
            // A sync that follows may take minutes.
            if job.action == .report { gateway.uploadReplies() }
        }
        return true
    }

    private mutating func perform(_ job: RemoteJob, isOneTooMany: Bool, _ stop: StopSignal) -> Bool
    {
        let entry = history.next(job)
        if let refusal = refusal(of: job, isOneTooMany) {
            addAnswer(entry, job.kind, refusal)
            return storeAnswers(stop)
        }
        guard commit(nil, [entry.memo: entry.text], stop) else { return false }
        history.record(entry)
        guard let outcome = gateway.perform(job.action, until: stop) else { return false }
        addAnswer(entry, job.kind, outcome)
        return storeAnswers(stop)
    }

    /// Returns why a job is not done; nil if it is.
    private func refusal(of job: RemoteJob, _ isOneTooMany: Bool) -> JobOutcome? {
        if case .invalid(let why) = job.action { return JobOutcome(.refused, why) }
        guard gateway.remote.allow.contains(RemoteSettings.operate) else {
            return JobOutcome(.refused, "remote.allow of this device does not have \"operate\"")
        }
        // A clock that was never set says nothing.
        if let end = job.expires, let now = queue.rightTime(at: clock.stamp()), now > end {
            return JobOutcome(.expired, "it was due until \(end.rfc3339)")
        }
        guard isOneTooMany else { return nil }
        return JobOutcome(.refused, "a list gets \(Self.maxOfAKind) \(job.kind)s at most")
    }

    // MARK: Answers

    private mutating func addAnswer(
        _ entry: JobHistory.Entry,
        _ kind: String,
        _ outcome: JobOutcome
    ) {
        var entry = entry
        entry.isAnswered = true
        let reply = JobReply(job: entry.id, kind: kind, outcome, stamp: clock.stamp())
        unstored.append(Answer(entry: entry, reply: reply))
    }

    /// Stores the answers; false if the disk refuses one, which is then tried again later.
    private mutating func storeAnswers(_ stop: StopSignal) -> Bool {
        while let answer = unstored.first {
            let (entry, reply) = (answer.entry, answer.reply)
            guard commit(reply, [entry.memo: entry.text], stop) else { return false }
            unstored.removeFirst()
            history.record(entry)
            gateway.publish(reply)
        }
        return true
    }
}

extension Queue {
    /// Stores a reply and memos, and waits for the disk.
    fileprivate func commit(
        _ reply: JobReply?,
        _ memos: [String: String],
        until stop: StopSignal
    ) -> Bool {
        guard let isOver = try? Wakeup() else { return false }
        let isStored = StateBox(false)
        let done: @Sendable ((any Error)?) -> Void = { error in
            isStored.update { $0 = error == nil }
            isOver.signal()
        }
        if let reply {
            put(reply, memos: memos, done: done)
        } else {
            put([], memos: memos, done: done)
        }
        // The writer has a heartbeat of its own.
        stop.life.rests()
        var entries = [PollEntry(isOver.descriptor), PollEntry(stop.descriptor)]
        while !entries[0].isReady, !entries[1].isReady { _ = wait(for: &entries) }
        // A stop waits for the disk only briefly.
        entries.removeLast()
        if !entries[0].isReady { _ = wait(for: &entries, timeout: .seconds(1)) }
        return isStored.value
    }
}
