// Waits until the endpoint accepts the device.
import Host
import HTTP
import Queue
import Records
import Remote
import Setup
import Status
import StatusBoard
import Upload

/// Asks the endpoint once per interval, and sooner after failures other than a refusal.
///
/// An endpoint that cannot be asked has accepted the device when it accepts the first events.
struct EnrolmentWait: Sendable {
    let destination: DestinationSettings
    let mark: EnrolmentMark
    let interval: Duration
    /// Signalled to retry now.
    let wakeup: Wakeup
    let context: ServiceContext

    private var endpoint: String { destination.transport.endpoint }

    /// Blocks until the device is accepted; false when stopped first.
    func run(until stop: StopSignal) -> Bool {
        let start = context.clock.now()
        var events: Subscription?
        // Retry often: nothing is collected until then, and an interval may be days.
        var retry = Retry([10, 30, 60, 120, 300, 900, 3600].map { min(.seconds($0), interval) })
        while !stop.isRaised {
            var pause = interval
            if events != nil, hasSentEvents(since: start) { return accepted() }
            do {
                let answer = try destination.verify(until: stop) { traffic in
                    // Suspends the heartbeat: this thread blocks on the writer, which has its own.
                    stop.life.rests()
                    try? context.queue.perform { try $0.record(traffic) }
                    context.budget.spend(traffic)
                }
                switch answer {
                case .accepted(_, let jobs):
                    if let jobs { context.jobs?.offer(jobs) }
                    return accepted()
                case .cannotBeAsked where events == nil: events = followEvents()
                case .cannotBeAsked: break
                }
            } catch {
                // A stop also aborts a request.
                if stop.isRaised { return false }
                report(error)
                if (error as? Failure)?.code != .tokenRefused { pause = retry.next() }
            }
            var entries = [PollEntry(stop.descriptor), PollEntry(wakeup.descriptor)]
            _ = stop.wait(for: &entries, timeout: pause)
            // A change may be the first of several: reset the backoff to retry soon.
            if entries[1].isReady { retry.succeeded() }
            wakeup.clear()
        }
        return false
    }

    private func accepted() -> Bool {
        do {
            try mark.write(endpoint)
        } catch {
            report(error)
        }
        context.log.info("enrolled", ["endpoint": endpoint])
        return true
    }

    private func report(_ error: any Error) {
        let failure = (error as? Failure) ?? Failure("\(error)")
        context.board.errors.add(failure, at: context.clock.now())
        context.log.warning("enrolment", ["why": failure.description])
    }

    /// Queues an event, and wakes this thread once the server has accepted it.
    private func followEvents() -> Subscription {
        context.log.info(
            "the server cannot verify this device: it is enrolled once the server accepts its events",
            ["endpoint": endpoint]
        )
        context.queue.accept(
            Event(
                .started,
                source: "gateway",
                detail: [("reason", .text("a new endpoint"))],
                stamp: context.clock.stamp()
            )
        )
        let (wakeup, start) = (wakeup, context.clock.now())
        return context.board.upload.subscribe { state in
            let sent = state.value?.streams[.events]?.lastSuccessAt
            if let sent, sent.boot > start { wakeup.signal() }
        }
    }

    private func hasSentEvents(since start: BootInstant) -> Bool {
        let sent = context.board.upload.state.value?.streams[.events]?.lastSuccessAt
        return sent.map { $0.boot > start } ?? false
    }
}
