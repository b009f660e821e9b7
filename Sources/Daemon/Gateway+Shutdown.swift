// Stops a gateway in order, and within its time limit even if a part hangs.
import Host
import Intake
import Listen
import Queue
import Records
import Setup
import Status

extension Gateway {
    /// Stops all parts by `deadline`; returns false if one hangs and could not be stopped.
    func stop(by deadline: BootInstant) -> Bool {
        defer { running.update { $0.subscriptions = [] } }
        let outcome = StateBox<Bool?>(nil)
        guard let over = try? Wakeup() else { return false }
        let thread: OwnThread
        do {
            // On a separate thread, because the disk may hang.
            thread = try OwnThread("stop") {
                let hasEnded = self.endAll()
                outcome.update { $0 = hasEnded }
                over.signal()
            }
        } catch { return false }
        var entries = [PollEntry(over.descriptor)]
        _ = wait(for: &entries, timeout: max(.zero, deadline - SystemClock().now()))
        if let hasEnded = outcome.value {
            // It holds the gateway, which holds the lock of the state directory.
            thread.join()
            return hasEnded
        }
        thread.detach()
        // On another thread, too, because it writes a file; waits only briefly.
        over.clear()
        try? OwnThread("in flight") {
            self.unwritten.keepAll()
            over.signal()
        }.detach()
        _ = wait(for: &entries, timeout: .milliseconds(300))
        context.log.error(
            "the disk does not answer: the next start counts the records that were not written",
            ["writer": "in \(context.queue.writerWord.call)"]
        )
        return false
    }

    /// Stops first the parts that make records, last the queue that stores them.
    private func endAll() -> Bool {
        let (queue, clock, status, running) = (
            context.queue, SystemClock(), door.status, running.value
        )
        var deadline = clock.now() + Services.stopLimit
        for thread in running.threads { thread.raise() }
        subscriber.raise()
        var ended = [
            services.stop(by: deadline), intake.stop(by: deadline), subscriber.stop(by: deadline),
            listen.stop(by: deadline),
        ]
        ended += running.threads.map { $0.stop(by: deadline) }
        accept(.stopped)
        // Twice: making room for the last records may evict others, which must be recorded as lost.
        for _ in 0..<2 { _ = try? queue.flushed() }
        let report = status.fresh(within: .seconds(1))
        context.board.keep(report, in: queue)
        deadline = clock.now() + .milliseconds(500)
        ended.append(running.health?.cancel(by: deadline) ?? true)
        ended.append(door.plane?.stop(by: deadline) ?? true)
        status.stop()
        let losses = queue.close()
        // The next start records them in the loss ledger.
        unwritten.keep(losses)
        for loss in losses {
            context.log.error(
                "lost at the stop, the disk rejects writes",
                ["stream": "\(loss.stream)", "records": "\(loss.records)"]
            )
        }
        let configuration = settings.configuration
        for directory in [configuration.stateDirectory, configuration.runtimeDirectory] {
            Snapshot.write(report.json, to: directory)
        }
        return ended.allSatisfy { $0 }
    }
}
