// Counts what a source does and publishes it at most once per second.
package import Host

/// The counters of one source; used by the source's thread only.
package struct SourceMeter {
    package private(set) var report: SourceReport
    private let board: Publisher<SourceReport>
    /// Records in each of the last 60 seconds, a ring indexed by the second modulo 60, up to
    /// `newestSecond`.
    private var seconds = [Int](repeating: 0, count: 60)
    private var newestSecond: Int64 = 0
    private var publishedAt: BootInstant?
    private var isOwed = false
    private var unusable = UnusableData()

    package init(device: String, board: Publisher<SourceReport>) {
        report = SourceReport(device: device)
        self.board = board
    }

    /// Counts a record that was accepted into the queue.
    package mutating func admit(_ stamp: Stamp) {
        report.records += 1
        report.firstRecordAt = report.firstRecordAt ?? stamp
        report.lastRecordAt = stamp
        advance(to: stamp.boot)
        seconds[Int(newestSecond % 60)] += 1
        isOwed = true
    }

    /// Counts readings that were lost.
    package mutating func drop(_ count: Int = 1) {
        report.dropped += count
        isOwed = true
    }

    package mutating func restarted() { report.restarts += 1 }

    /// Counts an overrun of the device's buffer.
    package mutating func overran() { report.overruns += 1 }

    /// Records that the source received data that cannot be used.
    ///
    /// After a minute of only such data the source is in error with `failure`, whatever it reports
    /// itself, until `usable` is called.
    package mutating func unusable(_ failure: Failure, at now: BootInstant) {
        guard unusable.record(at: now) else { return }
        unusable.failure = failure
        publishedAt = nil
        publish(now)
    }

    /// Records that the source received usable data, or knows that none can come.
    package mutating func usable() {
        if unusable.failure != nil { (publishedAt, isOwed) = (nil, true) }
        unusable = UnusableData()
    }

    /// Returns true while data arrives and none of it can be used.
    package func isUseless(at now: BootInstant) -> Bool { unusable.goesOn(at: now) }

    /// Publishes at once that the source is working and does `detail`.
    ///
    /// `concern` describes a problem that does not stop it.
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

    /// Publishes an error of a source that runs without result, with its counters, once per minute.
    package mutating func useless(_ failure: Failure, now: BootInstant) {
        isOwed = false
        if case .error(failure, _) = board.state, let publishedAt, now - publishedAt < .seconds(60)
        {
            return
        }
        publishedAt = now
        failed(failure)
    }

    /// Publishes at once that the source is not working.
    package mutating func failed(_ failure: Failure) {
        report.ratePerSecond = 0
        if unusable.failure != nil { publishedAt = nil }
        board.publish(.error(failure, previous: report))
        isOwed = false
    }

    package func loading() { board.publish(.loading(previous: report)) }

    /// Returns the time until the next update is due; nil if none is.
    ///
    /// A published rate is corrected after a minute without records.
    package func updateDelay(_ now: BootInstant) -> Duration? {
        guard isOwed || report.ratePerSecond > 0 else { return nil }
        let pause = Duration.seconds(isOwed && unusable.failure == nil ? 1 : 60)
        return publishedAt.map { max(.zero, $0 + pause - now) } ?? .zero
    }

    /// Publishes pending changes now; call it at the end of a run.
    package mutating func flush(_ now: BootInstant) {
        guard isOwed else { return }
        publishedAt = nil
        publish(now)
    }

    /// Publishes pending changes if an update is due.
    package mutating func update(_ now: BootInstant) {
        if let delay = updateDelay(now), delay <= .zero { publish(now) }
    }

    private mutating func publish(_ now: BootInstant) {
        // Each published error counts as a new one, so a lasting error is republished once per
        // minute.
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
