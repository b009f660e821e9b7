// Ending everything in order, and in time whatever hangs.
import Host
import Queue
import Records

/// The end of a gateway: first what makes records, last what keeps them.
struct Shutdown: Sendable {
    let services: Services
    let intake: Intake
    let threads: [StoppableThread]
    let health: ReliableTimer?
    let control: ControlPlane?
    let queue: Queue
    let status: StatusPublication
    /// The last record.
    let lastWords: @Sendable () -> Void
    /// What could not be written any more.
    let keep: @Sendable ([Loss]) -> Void
    /// What may not be written any more, as the time is over.
    let keepAll: @Sendable () -> Void
    /// What it was at the end.
    let remember: @Sendable (StatusReport) -> Void
    /// Where the last snapshot goes.
    let directories: [String]

    /// False when something hangs and was left to itself.
    func run(_ log: Log, by deadline: BootInstant) -> Bool {
        let outcome = StateBox<Bool?>(nil)
        // On a thread of its own, for the disk may hang.
        guard let over = try? Wakeup(),
            (try? OwnThread("stop") {
                let hasEnded = endAll()
                outcome.update { $0 = hasEnded }
                over.signal()
            }) != nil
        else { return false }
        var entries = [PollEntry(over.descriptor)]
        _ = wait(for: &entries, timeout: max(.zero, deadline - SystemClock().now()))
        if let hasEnded = outcome.value { return hasEnded }
        // On another thread, too, because it writes a file; waited for only a moment.
        let (keepAll, kept) = (keepAll, over)
        over.clear()
        try? OwnThread("in flight") {
            keepAll()
            kept.signal()
        }.detach()
        _ = wait(for: &entries, timeout: .milliseconds(300))
        log.error(
            "the disk does not answer: what was not written yet is counted by the next start",
            ["writer": "in \(queue.writerWord.call)"]
        )
        return false
    }

    private func endAll() -> Bool {
        let clock = SystemClock()
        var deadline = clock.now() + Services.stopLimit
        for thread in threads { thread.raise() }
        var ended = [services.stop(by: deadline), intake.stop(by: deadline)]
        ended += threads.map { $0.stop(by: deadline) }
        lastWords()
        // Twice: making room for the last records may delete others, and that has to be entered, too.
        for _ in 0..<2 { _ = try? queue.flushed() }
        let report = status.fresh(within: .seconds(1))
        remember(report)
        deadline = clock.now() + .milliseconds(500)
        ended.append(health?.cancel(by: deadline) ?? true)
        ended.append(control?.stop(by: deadline) ?? true)
        status.stop()
        keep(queue.close())
        for directory in directories { Snapshot.write(report.json, to: directory) }
        return ended.allSatisfy { $0 }
    }
}
