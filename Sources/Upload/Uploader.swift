// The upload thread and its triggers.
package import Host
package import Queue
package import StatusBoard
import Synchronization

/// Uploads the queue's records, on its own thread.
package final class Uploader: Sendable {
    private enum Trigger: Sendable {
        /// Run a sync; a user who waits for its result gives a callback.
        case sync(SyncReason, (@Sendable (SyncResult) -> Void)? = nil)
        case stop
    }

    private let settings: UploadSettings
    private let queue: Queue
    private let clock: any HostClock
    private let random: @Sendable () -> Double
    private let budget: DayBudget?
    /// A private board, forwarded to the shared one until the uploader is abandoned.
    private let board = Publisher<UploadReport>()
    private let forwarding = Mutex<Subscription?>(nil)
    private let destination: @Sendable () throws -> any Destination
    /// Holds a sync of each program that the control socket accepts (256), and of those that left
    /// since.
    private let triggers = Mailbox<Trigger>(limit: 1024)
    /// Callbacks of users who wait for the running sync.
    private let asking = Mutex([@Sendable (SyncResult) -> Void]())
    /// The wait before retrying a destination that could not be opened.
    private static let openPause = Duration.seconds(60)

    /// Creates an uploader; `destination` is called on its thread.
    ///
    /// `random` returns numbers in 0..<1; `budget` is shared by the whole program.
    package init(
        settings: UploadSettings,
        queue: Queue,
        board: Publisher<UploadReport>,
        clock: any HostClock = SystemClock(),
        random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
        budget: DayBudget? = nil,
        destination: @escaping @Sendable () throws -> any Destination
    ) {
        self.settings = settings
        self.queue = queue
        self.clock = clock
        self.random = random
        self.budget = budget
        self.destination = destination
        if let before = board.state.value { self.board.loaded(before.resumed()) }
        let subscription = self.board.subscribe { state in
            if case .unknown = state { return }
            board.publish(state)
        }
        forwarding.withLock { $0 = subscription }
    }

    /// Reports a tick of the upload interval.
    ///
    /// Dropped if another trigger is queued, which leads to a sync too, so ticks do not pile up
    /// during a long sync.
    package func tick() { if triggers.count == 0 { _ = triggers.post(.sync(.tick)) } }

    /// Requests a sync at once, in quiet hours too; `isOverBudget` ignores the daily budget.
    ///
    /// Calls `done` with the result, which is empty if the uploader has ended.
    package func sync(
        isOverBudget: Bool = false,
        _ done: @escaping @Sendable (SyncResult) -> Void
    ) {
        let reason = isOverBudget ? SyncReason.askedOverBudget : .asked
        if !triggers.post(.sync(reason, done)) { done(SyncResult()) }
    }

    /// Reports a network change: uploads that may have failed without it are retried at once.
    package func networkChanged() { _ = triggers.post(.sync(.network)) }

    /// Reports a new token, which is tried at once.
    package func tokenChanged() { _ = triggers.post(.sync(.token)) }

    /// Ends `run`; raise the stop signal too, to abort a request.
    package func stop() { _ = triggers.post(.stop, urgent: true) }

    /// Handles triggers until stopped; blocks.
    package func run(until stop: StopSignal) {
        defer { abandon() }
        guard let (sync, heartbeat) = open(until: stop) else { return }
        board.loaded((board.state.value ?? UploadReport()).resumed())
        sync.start()
        while let reasons = next(sync.retryDelay, stop) {
            // From here on this thread waits for the writer's thread, which has its own watchdog,
            // not for a disk.
            stop.life.rests()
            if reasons.contains(.network) { sync.networkChanged() }
            let result = sync.perform(Self.strongest(reasons))
            answer(result)
            guard result.left == 0, let heartbeat, sync.hasRoom else { continue }
            sync.add(heartbeat.beat(at: clock.now(), until: stop))
        }
        stop.life.rests()
        sync.finish()
    }

    /// Detaches the uploader, from any thread: answers everyone who asked for a sync, now or later,
    /// with an empty result, and publishes nothing more.
    package func abandon() {
        forwarding.withLock { $0 = nil }
        var rest: [Trigger] = []
        triggers.close(into: &rest)
        for case .sync(_, let done?) in rest { done(SyncResult()) }
        answer(SyncResult())
    }

    /// Opens the destination, retrying until that succeeds; returns nil if stopped first.
    private func open(until stop: StopSignal) -> (Sync, HeartbeatRequest?)? {
        while !stop.isRaised {
            // It may wait for the writer's thread, which has its own watchdog.
            stop.life.rests()
            do {
                return try makeSync(stop)
            } catch {
                board.failed((error as? Failure) ?? Failure("\(error)"))
            }
            guard next(Self.openPause, stop) != nil else { return nil }
            answer(SyncResult())
        }
        return nil
    }

    private func makeSync(_ stop: StopSignal) throws -> (Sync, HeartbeatRequest?) {
        let sync = Sync(
            settings: settings,
            queue: queue,
            destination: try destination(),
            clock: clock,
            random: random,
            board: board,
            budget: budget,
            stop: stop
        )
        return (sync, try settings.heartbeat.map { try HeartbeatRequest($0) })
    }

    /// Waits for triggers, at most `limit` (nil: without limit); returns the reasons for a sync,
    /// nil when stopped.
    private func next(_ limit: Duration?, _ stop: StopSignal) -> [SyncReason]? {
        guard !stop.isRaised else { return nil }
        var pending: [Trigger] = []
        stop.life.enters("pthread_cond_wait", for: limit)
        triggers.takeAll(into: &pending, timeout: limit)
        stop.life.returns()
        var reasons: [SyncReason] = []
        var isStopped = false
        for trigger in pending {
            switch trigger {
            case .sync(let reason, let done):
                reasons.append(reason)
                if let done { asking.withLock { $0.append(done) } }
            case .stop: isStopped = true
            }
        }
        return isStopped ? nil : reasons
    }

    private func answer(_ result: SyncResult) {
        let asking = asking.withLock { asking in
            defer { asking = [] }
            return asking
        }
        for done in asking { done(result) }
    }

    /// Returns the most permissive of several reasons.
    private static func strongest(_ reasons: [SyncReason]) -> SyncReason {
        [.askedOverBudget, .asked, .token, .network, .tick].first { reasons.contains($0) } ?? .retry
    }
}
