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
    /// The most of each of these kinds in one list: a report takes seconds and has up to 100 kB, a
    /// restart is a gap in what a source records, and a sync takes minutes.
    private static let maxOfAKind = 4
    private static let limited = ["report", "restart", "sync", "settings"]
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
        /// The outcome of a trial that it reports.
        var stored: StoredOutcome?

        var memos: [String: String] {
            let stored = stored.map { [$0.memo: $0.mark] } ?? [:]
            return stored.merging([entry.memo: entry.text]) { $1 }
        }
    }

    private let queue: Queue
    private let clock: any HostClock
    private let gateway: any JobGateway
    private let offers: OfferedJobs
    private let commit: Commit
    /// Nil where no settings are taken from the server.
    private var settings: SettingsTrial?
    /// Nil where the program is not replaced.
    private var upgrade: UpgradeTrial?
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
        settings: SettingsTrial? = nil,
        upgrade: UpgradeTrial? = nil,
        commit: Commit? = nil
    ) {
        (self.queue, self.clock, self.gateway, self.offers) = (queue, clock, gateway, offers)
        (self.settings, self.upgrade) = (settings, upgrade)
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
        observe()
        let owed = unstored.map(\.entry.id)
        for entry in history.interrupted where !owed.contains(entry.id) {
            addAnswer(entry, entry.kind, Self.interrupted)
        }
    }

    /// Does what is due; returns how long to wait with the rest, nil: until the next offer.
    package mutating func turn(until stop: StopSignal) -> Duration? {
        observe()
        if !unstored.isEmpty, storeAnswers(stop) { gateway.uploadReplies() }
        var pauses = [doJobs(until: stop), upgrade?.pause]
        if gateway.remote.allowsSettings, settings?.isOn == true {
            pauses.append(min(SettingsTrial.pause, max(.seconds(1), gateway.interval)))
        }
        return pauses.compactMap { $0 }.min()
    }

    /// Observes what is on trial, and adds the answers that are owed.
    private mutating func observe() {
        if gateway.remote.allowsSettings { settings?.observe() }
        // It ends whatever is allowed by now.
        upgrade?.observe()
        addOwedAnswers()
    }

    private mutating func doJobs(until stop: StopSignal) -> Duration? {
        guard storeAnswers(stop) else { return Self.storePause }
        // A sync would keep a good version from declaring itself good in time.
        if let pause = upgrade?.pause { return pause }
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
            // A sync may take minutes, in which a trial goes on.
            observe()
            counts[job.kind, default: 0] += 1
            let isOneTooMany =
                Self.limited.contains(job.kind)
                && counts[job.kind] ?? 0 > Self.maxOfAKind
            guard !stop.isRaised, perform(job, isOneTooMany: isOneTooMany, stop) else {
                return false
            }
            isAnswered = true
            // A sync that follows may take minutes.
            if job.action == .report { gateway.uploadReplies() }
            // Root's unit may end this process at any time; the rest of the list is done later.
            if upgrade?.pause != nil { return false }
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
        switch job.action {
        case .settings(let offer): return put(offer, entry, stop)
        case .upgrade(let offer): return begin(offer, entry, stop)
        default: break
        }
        guard let outcome = gateway.perform(job.action, until: stop) else { return false }
        addAnswer(entry, job.kind, outcome)
        return storeAnswers(stop)
    }

    /// Puts settings on trial, or answers why not; false if the disk refused an answer.
    private mutating func put(
        _ offer: SettingsOffer,
        _ entry: JobHistory.Entry,
        _ stop: StopSignal
    ) -> Bool {
        let (stamp, key) = (clock.stamp(), gateway.remote.key)
        do {
            guard let before = try settings?.check(offer, key: key) else {
                throw Failure("this program takes no settings")
            }
            try settings?.makeWay(for: offer)
            addOwedAnswers()
            guard storeAnswers(stop) else {
                throw Failure("the disk refused the answer about the version before")
            }
            let time = queue.rightTime(at: stamp) ?? stamp.wall
            try settings?.begin(offer, job: entry.id, before, at: time)
            addOwedAnswers()
        } catch {
            addAnswer(entry, "the settings", .settings(offer.version), error)
        }
        return storeAnswers(stop)
    }

    /// Asks for another version of the program, or answers why not; false if the disk refused an
    /// answer.
    private mutating func begin(
        _ offer: UpgradeOffer,
        _ entry: JobHistory.Entry,
        _ stop: StopSignal
    ) -> Bool {
        let key = gateway.remote.key
        do {
            guard upgrade != nil else { throw Failure("this program takes no upgrades") }
            // Its restarts would count against them.
            if settings?.isOn == true { throw Failure("settings are on trial; ask again later") }
            try upgrade?.begin(offer, job: entry.id, key: key)
            addOwedAnswers()
        } catch {
            addAnswer(entry, "the upgrade", .program(offer.version), error)
        }
        return storeAnswers(stop)
    }

    /// Returns why a job is not done; nil if it is.
    private func refusal(of job: RemoteJob, _ isOneTooMany: Bool) -> JobOutcome? {
        if case .invalid(let why) = job.action { return JobOutcome(.refused, why) }
        let needed =
            switch job.action {
            case .settings: RemoteSettings.settings
            case .upgrade: RemoteSettings.upgrade
            default: RemoteSettings.operate
            }
        guard gateway.remote.allow.contains(needed) else {
            return JobOutcome(.refused, "remote.allow of this device does not have \"\(needed)\"")
        }
        // A clock that was never set says nothing.
        if let end = job.expires, let now = queue.rightTime(at: clock.stamp()), now > end {
            return JobOutcome(.expired, "it was due until \(end.rfc3339)")
        }
        guard isOneTooMany else { return nil }
        return JobOutcome(
            .refused,
            "a list gets \(Self.maxOfAKind) of the kind \(job.kind) at most"
        )
    }

    // MARK: Answers

    private mutating func addAnswer(
        _ entry: JobHistory.Entry,
        _ kind: String,
        _ outcome: JobOutcome,
        _ stored: StoredOutcome? = nil
    ) {
        var entry = entry
        entry.isAnswered = true
        let reply = JobReply(job: entry.id, kind: kind, outcome, stamp: clock.stamp())
        unstored.append(Answer(entry: entry, reply: reply, stored: stored))
    }

    /// Adds the answer that a version is not put on trial: a `Failure` refuses it, and with any other
    /// error it could not be stored.
    private mutating func addAnswer(
        _ entry: JobHistory.Entry,
        _ what: String,
        _ version: JobOutcome.Version,
        _ error: any Error
    ) {
        let outcome =
            if let failure = error as? Failure {
                JobOutcome(.refused, failure.message, version: version)
            } else {
                JobOutcome(.failed, "\(what) cannot be stored: \(error)", version: version)
            }
        addAnswer(entry, entry.kind, outcome)
    }

    /// Adds the answers about trials that are owed.
    private mutating func addOwedAnswers() {
        for outcomes in [settings?.outcomes ?? [], upgrade?.outcomes ?? []] {
            let answered = outcomes.lastIndex { queue.remembered($0.memo) == $0.mark }
            for stored in outcomes.dropFirst(answered.map { $0 + 1 } ?? 0)
            where !unstored.contains(where: { $0.stored == stored }) {
                let entry = history.entry(of: stored.job, stored.kind)
                addAnswer(entry, entry.kind, stored.outcome, stored)
            }
        }
    }

    /// Stores the answers; false if the disk refuses one, which is then tried again later.
    private mutating func storeAnswers(_ stop: StopSignal) -> Bool {
        while let answer = unstored.first {
            guard commit(answer.reply, answer.memos, stop) else { return false }
            unstored.removeFirst()
            history.record(answer.entry)
            gateway.publish(answer.reply)
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
