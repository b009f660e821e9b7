// Stops a gateway in order, and within its time limit even if a part hangs.
import Host
import Intake
import Queue
import Records
import Status

/// Stops a gateway: first the parts that make records, last the queue that stores them.
struct Shutdown: Sendable {
    let services: Services
    let intake: IntakeService
    let threads: [StoppableThread]
    let health: ReliableTimer?
    let control: ControlPlane?
    let queue: Queue
    let status: StatusPublication
    /// Stores the last event.
    let lastWords: @Sendable () -> Void
    /// Saves the losses that could not be written.
    let keep: @Sendable ([Loss]) -> Void
    /// Saves all records in flight when the time is over.
    let keepAll: @Sendable () -> Void
    /// Stores the last report for the next start.
    let remember: @Sendable (StatusReport) -> Void
    /// The directories that get the last snapshot.
    let directories: [String]

    /// Stops all parts; returns false if one hangs and was abandoned.
    func run(_ log: Log, by deadline: BootInstant) -> Bool {
        let outcome = StateBox<Bool?>(nil)
        // On a separate thread, because the disk may hang.
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
        // On another thread, too, because it writes a file; waits only briefly.
        let (keepAll, kept) = (keepAll, over)
        over.clear()
        try? OwnThread("in flight") {
            keepAll()
            kept.signal()
        }.detach()
        _ = wait(for: &entries, timeout: .milliseconds(300))
        log.error(
            "the disk does not answer: the next start counts the records that were not written",
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
        // Twice: making room for the last records may evict others, which must be recorded as lost.
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
