// The thread that syncs run on, and what calls for them.
package import Host
package import Queue
package import StatusBoard
import Synchronization

/// Sends what the queue holds, on a thread of its own.
package final class Uploader: Sendable {
    /// Why a sync is wanted.
    enum Trigger: Sendable {
        /// The grid's tick: not while backing off.
        case tick
        /// Someone asked: at once, whatever the backoff says.
        case asked(SyncReason, @Sendable (SyncResult) -> Void)
        /// The network or the token changed.
        case changed(SyncReason)
        case stop
    }

    private let settings: UploadSettings
    private let queue: Queue
    private let clock: any HostClock
    private let random: @Sendable () -> Double
    private let budget: DayBudget?
    /// Its own, which is passed on until it is abandoned.
    private let board = Publisher<UploadReport>()
    private let forwarding = Mutex<Subscription?>(nil)
    private let destination: @Sendable () throws -> any Destination
    /// Has room for a sync of each program that the control socket takes (256), and those that left since.
    private let triggers = Mailbox<Trigger>(limit: 1024)
    /// Those who wait for the sync that goes on.
    private let asking = Mutex([@Sendable (SyncResult) -> Void]())
    /// Until a destination that could not be opened is tried again.
    private static let openPause = Duration.seconds(60)

    /// `destination` is opened on the uploader's thread; `random` gives numbers in 0..<1; `budget` is the program's one.
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

    /// The grid's tick.
    ///
    /// Not kept where another trigger waits, which leads to a sync, too: so ticks during a long sync do not pile up.
    package func tick() { if triggers.count == 0 { _ = triggers.post(.tick) } }

    /// Asks for a sync at once, in quiet hours, too; `isOverBudget`: whatever it costs of the day's budget.
    ///
    /// `done` is called with its result; with an empty one where the uploader has ended.
    package func sync(
        isOverBudget: Bool = false,
        _ done: @escaping @Sendable (SyncResult) -> Void
    ) {
        let reason = isOverBudget ? SyncReason.askedOverBudget : .asked
        if !triggers.post(.asked(reason, done)) { done(SyncResult()) }
    }

    /// The network changed: what failed for want of it is tried at once.
    package func networkChanged() { _ = triggers.post(.changed(.network)) }

    /// There is another token: it is tried at once.
    package func tokenChanged() { _ = triggers.post(.changed(.token)) }

    /// Ends `run`; raise the stop signal too, to end a request that is under way.
    package func stop() { _ = triggers.post(.stop, urgent: true) }

    /// Serves triggers until stopped; blocks.
    package func run(until stop: StopSignal) {
        defer { abandon() }
        guard let (sync, heartbeat) = open(until: stop) else { return }
        board.loaded((board.state.value ?? UploadReport()).resumed())
        sync.start()
        while let reasons = next(sync.retryDelay, stop) {
            // From here on it waits for the writer's thread (which is watched itself), not for a disk.
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

    /// Ends its connections to others, from any thread: whoever asked for a sync is told that there is none, now and
    /// later, and the board hears nothing more.
    package func abandon() {
        forwarding.withLock { $0 = nil }
        var rest: [Trigger] = []
        triggers.close(into: &rest)
        for case .asked(_, let done) in rest { done(SyncResult()) }
        answer(SyncResult())
    }

    /// The destination, which is tried again until it can be opened; nil when stopped first.
    private func open(until stop: StopSignal) -> (Sync, HeartbeatRequest?)? {
        while !stop.isRaised {
            // It waits for the writer's thread, perhaps, which is watched itself.
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

    /// Waits for triggers, at most `limit` (nil: for ever); why there is to be a sync, nil when stopped.
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
            case .tick: reasons.append(.tick)
            case .asked(let reason, let done):
                reasons.append(reason)
                asking.withLock { $0.append(done) }
            case .changed(let reason): reasons.append(reason)
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

    /// Of several reasons for one sync the one that permits most.
    private static func strongest(_ reasons: [SyncReason]) -> SyncReason {
        [.askedOverBudget, .asked, .token, .network, .tick].first { reasons.contains($0) } ?? .retry
    }
}
