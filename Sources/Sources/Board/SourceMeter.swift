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

    /// Working, doing `detail`: told at once.
    package mutating func working(_ detail: String, device: String? = nil, now: BootInstant) {
        report.detail = detail
        if let device { report.device = device }
        publish(now)
    }

    /// Not working: told at once.
    package mutating func failed(_ failure: Failure) {
        report.ratePerSecond = 0
        board.publish(.error(failure, previous: report))
        isOwed = false
    }

    package func loading() { board.publish(.loading(previous: report)) }

    /// Until the board is owed an update; nil when it is not.
    ///
    /// A rate that is told is corrected once the minute it stands for has passed in silence.
    package func updateDelay(_ now: BootInstant) -> Duration? {
        guard isOwed || report.ratePerSecond > 0 else { return nil }
        let pause = Duration.seconds(isOwed ? 1 : 60)
        return publishedAt.map { max(.zero, $0 + pause - now) } ?? .zero
    }

    /// Tells the board now what is owed: at the end of a run.
    package mutating func flush(_ now: BootInstant) {
        if isOwed { publish(now) }
    }

    /// Tells the board what is owed, if it is time.
    package mutating func update(_ now: BootInstant) {
        if let delay = updateDelay(now), delay <= .zero { publish(now) }
    }

    private mutating func publish(_ now: BootInstant) {
        advance(to: now)
        let covered = max(1, min(60, newestSecond - firstSecond + 1))
        report.ratePerSecond = Double(seconds.reduce(0, +)) / Double(covered)
        publishedAt = now
        isOwed = false
        board.loaded(report)
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
