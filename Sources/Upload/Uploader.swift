// Batches to the server: freeze, send, judge, mark.
package import Board
package import Host
package import Store

/// What the uploader needs to know.
package struct UploadSettings: Sendable {
    package var transport: TransportSettings
    /// Set where the endpoint is a bucket rather than an ingest server.
    package var bucket: BucketSettings?
    package var deviceID: String
    /// Names on the wire.
    package var streamNames: [Stream: String]
    package var maxBatchBytes: Int
    package var compression: Compression
    /// How long after boot uploads wait for the clock's first sync.
    package var clockPatience: Duration
    /// Of the grid whose ticks call for syncs.
    package var interval: Duration = .seconds(300)
    /// While a backlog is sent, the newest records go in between this often.
    package var liveInterval: Duration = .seconds(60)
    /// Reads the device token, or a bucket's keys as `ID:SECRET`; called before each sync, so that new ones
    /// heal by themselves.
    package var token: @Sendable () throws -> String

    package init(
        transport: TransportSettings,
        deviceID: String,
        streamNames: [Stream: String],
        maxBatchBytes: Int = 8 << 20,
        compression: Compression = .gzip,
        clockPatience: Duration = .seconds(120),
        token: @escaping @Sendable () throws -> String
    ) {
        self.transport = transport
        self.deviceID = deviceID
        self.streamNames = streamNames
        self.maxBatchBytes = maxBatchBytes
        self.compression = compression
        self.clockPatience = clockPatience
        self.token = token
    }
}

/// Sends what the queue holds, on a thread of its own.
package final class Uploader: Sendable {
    /// Why a sync is wanted.
    enum Trigger: Sendable {
        /// The grid's tick: not while backing off.
        case tick
        /// Someone asked: at once, whatever the backoff says.
        case asked(@Sendable (Bool) -> Void)
        /// The way to the server, or the token, is another one.
        case changed(SyncReason)
        case stop
    }

    private let settings: UploadSettings
    private let queue: Queue
    private let clock: any HostClock
    private let board: Publisher<UploadReport>
    private let triggers = Mailbox<Trigger>(limit: 64)

    package init(
        settings: UploadSettings,
        queue: Queue,
        board: Publisher<UploadReport>,
        clock: any HostClock = SystemClock()
    ) {
        self.settings = settings
        self.queue = queue
        self.board = board
        self.clock = clock
    }

    /// The grid's tick.
    ///
    /// Ticks that come while a sync runs are one.
    package func tick() { _ = triggers.post(.tick) }

    /// A sync at once; `done` is called with whether nothing was left pending.
    package func sync(_ done: @escaping @Sendable (Bool) -> Void) {
        if !triggers.post(.asked(done)) { done(false) }
    }

    /// The network changed: what failed for want of it is tried at once.
    package func networkChanged() { _ = triggers.post(.changed(.network)) }

    /// There is another token: it is tried at once.
    package func tokenChanged() { _ = triggers.post(.changed(.token)) }

    /// Ends `run`; raise the stop signal too, to end a request that is under way.
    package func stop() { _ = triggers.post(.stop, urgent: true) }

    /// Serves triggers until stopped; blocks.
    ///
    /// Returns when stopped. Throws only if libcurl or the database cannot be opened at the start.
    package func run(until stop: StopSignal) throws {
        let sync = try SyncRun(
            settings: settings,
            queue: queue,
            clock: clock,
            board: board,
            stop: stop
        )
        var pending: [Trigger] = []
        board.loaded(UploadReport())
        defer { refuseTheRest(&pending) }
        while !stop.isRaised {
            triggers.takeAll(into: &pending, timeout: sync.retryDelay)
            var answers: [@Sendable (Bool) -> Void] = []
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
            let isDone = sync.perform(Self.strongest(reasons))
            for answer in answers { answer(isDone) }
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
        for case .asked(let done) in rest { done(false) }
    }
}
