// Counts what a source does, and tells the board at most once a second.
package import Host

/// The figures of one source; lives on the source's thread.
package struct SourceMeter {
    package private(set) var report: SourceReport
    private let board: Publisher<SourceReport>
    /// Records in each of the last 60 seconds, and the second that `seconds[0]`… were last used for.
    private var seconds = [Int](repeating: 0, count: 60)
    private var newestSecond: Int64 = 0
    private var publishedAt: BootInstant?
    private var isOwed = false
    private var unusable = UnusableData()

    package init(device: String, board: Publisher<SourceReport>) {
        report = SourceReport(device: device)
        self.board = board
    }

    /// A record was admitted.
    package mutating func admit(_ stamp: Stamp) {
        report.records += 1
        report.lastRecordAt = stamp
        advance(to: stamp.boot)
        seconds[Int(newestSecond % 60)] += 1
        isOwed = true
    }

    /// A reading was lost that should have been kept.
    package mutating func drop(_ count: Int = 1) {
        report.dropped += count
        isOwed = true
    }

    package mutating func restarted() { report.restarts += 1 }

    /// Data came in that cannot be used.
    ///
    /// After a minute of nothing else the source is in error with `failure`, whatever it reports of itself, until
    /// `usable` is called.
    package mutating func unusable(_ failure: Failure, at now: BootInstant) {
        guard unusable.note(at: now) else { return }
        unusable.failure = failure
        publishedAt = nil
        publish(now)
    }

    /// Usable data came in, or the source knows that none can come.
    package mutating func usable() {
        if unusable.failure != nil { (publishedAt, isOwed) = (nil, true) }
        unusable = UnusableData()
    }

    /// Data comes in, and none of it can be used.
    package func isUseless(at now: BootInstant) -> Bool { unusable.goesOn(at: now) }

    /// Working, doing `detail`: told at once.
    ///
    /// `concern`: what is wrong all the same.
    package mutating func working(
        _ detail: String,
        device: String? = nil,
        concern: String? = nil,
        now: BootInstant
    ) {
        report.detail = detail
        report.concern = concern
        if let device { report.device = device }
        publish(now)
    }

    /// Working to no use: an error, published once a minute with the figures of that time.
    package mutating func useless(_ failure: Failure, now: BootInstant) {
        isOwed = false
        if case .error(failure, _) = board.state, let publishedAt, now - publishedAt < .seconds(60)
        {
            return
        }
        publishedAt = now
        failed(failure)
    }

    /// Not working: told at once.
    package mutating func failed(_ failure: Failure) {
        report.ratePerSecond = 0
        if unusable.failure != nil { publishedAt = nil }
        board.publish(.error(failure, previous: report))
        isOwed = false
    }

    package func loading() { board.publish(.loading(previous: report)) }

    /// Until the board is owed an update; nil when it is not.
    ///
    /// A rate that is told is corrected once the minute it stands for has passed in silence.
    package func updateDelay(_ now: BootInstant) -> Duration? {
        guard isOwed || report.ratePerSecond > 0 else { return nil }
        let pause = Duration.seconds(isOwed && unusable.failure == nil ? 1 : 60)
        return publishedAt.map { max(.zero, $0 + pause - now) } ?? .zero
    }

    /// Tells the board now what is owed: at the end of a run.
    package mutating func flush(_ now: BootInstant) {
        guard isOwed else { return }
        publishedAt = nil
        publish(now)
    }

    /// Tells the board what is owed, if it is time.
    package mutating func update(_ now: BootInstant) {
        if let delay = updateDelay(now), delay <= .zero { publish(now) }
    }

    private mutating func publish(_ now: BootInstant) {
        // Each error that is published counts as one: the figures of one that lasts are renewed once a minute.
        if unusable.failure != nil, let publishedAt, now - publishedAt < .seconds(60) { return }
        advance(to: now)
        let covered = max(1, min(60, newestSecond - firstSecond + 1))
        report.ratePerSecond = Double(seconds.reduce(0, +)) / Double(covered)
        publishedAt = now
        isOwed = false
        if let failure = unusable.failure {
            board.publish(.error(failure, previous: report))
        } else {
            board.loaded(report)
        }
    }

    private var firstSecond: Int64 = 0

    private mutating func advance(to now: BootInstant) {
        let second = now.nanoseconds / 1_000_000_000
        if firstSecond == 0 { firstSecond = second }
        guard second > newestSecond else { return }
        let gap = min(60, second - newestSecond)
        for step in 0..<gap { seconds[Int((second - step) % 60)] = 0 }
        newestSecond = second
    }
}
