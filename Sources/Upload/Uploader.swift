// The thread that syncs run on, and what calls for them.
package import Board
package import Host
package import Queue

/// Sends what the queue holds, on a thread of its own.
package final class Uploader: Sendable {
    /// Why a sync is wanted.
    enum Trigger: Sendable {
        /// The grid's tick: not while backing off.
        case tick
        /// Someone asked: at once, whatever the backoff says.
        case asked(@Sendable (SyncResult) -> Void)
        /// The way to the server, or the token, is another one.
        case changed(SyncReason)
        case stop
    }

    private let settings: UploadSettings
    private let queue: Queue
    private let clock: any HostClock
    private let random: @Sendable () -> Double
    private let board: Publisher<UploadReport>
    private let destination: @Sendable () throws -> any Destination
    private let triggers = Mailbox<Trigger>(limit: 64)

    /// `destination` is opened on the uploader's thread; `random` gives numbers in 0..<1.
    package init(
        settings: UploadSettings,
        queue: Queue,
        board: Publisher<UploadReport>,
        clock: any HostClock = SystemClock(),
        random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
        destination: @escaping @Sendable () throws -> any Destination
    ) {
        self.settings = settings
        self.queue = queue
        self.board = board
        self.clock = clock
        self.random = random
        self.destination = destination
    }

    /// The grid's tick.
    ///
    /// Ticks that come while a sync runs are one.
    package func tick() { _ = triggers.post(.tick) }

    /// A sync at once; `done` is called with what it has come to.
    package func sync(_ done: @escaping @Sendable (SyncResult) -> Void) {
        if !triggers.post(.asked(done)) { done(SyncResult()) }
    }

    /// The network changed: what failed for want of it is tried at once.
    package func networkChanged() { _ = triggers.post(.changed(.network)) }

    /// There is another token: it is tried at once.
    package func tokenChanged() { _ = triggers.post(.changed(.token)) }

    /// Ends `run`; raise the stop signal too, to end a request that is under way.
    package func stop() { _ = triggers.post(.stop, urgent: true) }

    /// Serves triggers until stopped; blocks.
    ///
    /// Returns when stopped. Throws only if the destination cannot be opened at the start.
    package func run(until stop: StopSignal) throws {
        let sync = Sync(
            settings: settings,
            queue: queue,
            destination: try destination(),
            clock: clock,
            random: random,
            board: board,
            stop: stop
        )
        let heartbeat = try settings.heartbeat.map { try Heartbeat($0) }
        var pending: [Trigger] = []
        board.loaded(UploadReport())
        defer { refuseTheRest(&pending) }
        while !stop.isRaised {
            stop.life.enters("pthread_cond_wait", for: sync.retryDelay)
            triggers.takeAll(into: &pending, timeout: sync.retryDelay)
            // What waits for the disk from here on waits for the writer, which is watched itself.
            stop.life.rests()
            var answers: [@Sendable (SyncResult) -> Void] = []
            var reasons: [SyncReason] = []
            for trigger in pending {
                switch trigger {
                case .tick: reasons.append(.tick)
                case .asked(let done):
                    reasons.append(.asked)
                    answers.append(done)
                case .changed(let reason): reasons.append(reason)
                // What was asked for before it is refused with the rest.
                case .stop: return
                }
            }
            pending.removeAll(keepingCapacity: true)
            let result = sync.perform(Self.strongest(reasons))
            for answer in answers { answer(result) }
            if result.left == 0 { heartbeat?.beat(at: clock.now(), until: stop) }
        }
    }

    /// Of several reasons for one sync the one that may do most.
    private static func strongest(_ reasons: [SyncReason]) -> SyncReason {
        [.asked, .token, .network, .tick].first { reasons.contains($0) } ?? .retry
    }

    /// Whoever asked for a sync is told at the end that there was none.
    private func refuseTheRest(_ pending: inout [Trigger]) {
        var rest = pending
        triggers.takeAll(into: &pending, timeout: .zero)
        rest += pending
        for case .asked(let done) in rest { done(SyncResult()) }
    }
}
