// The control plane: executes field commands in the running gateway.
package import Host
package import Queue
package import Setup
import StatusBoard
package import Upload

/// The parts of a running gateway that commands use; only `restart` may block.
package protocol RunningGateway: Sendable {
    var queue: Queue { get }
    var configuration: Configuration { get }
    /// Makes the collector of the present report.
    var collector: @Sendable () -> StatusCollector { get }
    /// Reads the figures of this process.
    var figures: @Sendable () -> GatewayFigures { get }

    /// Starts a sync and calls back when it ends; with nil if no server is configured.
    func sync(isOverBudget: Bool, _ done: @escaping @Sendable (SyncResult?) -> Void)

    func reload()

    /// Restarts a source, which may wait for its device; returns an error message or nil.
    func restart(_ source: SourceName) -> String?
}

/// Runs the control socket, and one worker thread each for queue requests and restarts.
package final class ControlPlane: Sendable {
    private let lines: LineServer<ControlHandler>
    package let thread: StoppableThread
    private let workers: [Worker]
    /// True if any client watches; otherwise a change need not wake the thread.
    private let isWatched: StateBox<Bool>
    private let publications: Subscription

    /// `inside`: returns the queue and the actions; nil while the gateway starts.
    package convenience init(
        path: String,
        status: StatusPublication,
        inside: @escaping @Sendable () -> (any RunningGateway)?
    ) throws {
        let (questions, restarts) = (try Worker("control-queue"), try Worker("control-source"))
        try self.init(path: path, status: status, workers: [questions, restarts]) { request, done in
            guard let gateway = inside() else {
                let error = "waypost is starting; `waypost status` says what it waits for"
                return done(ControlReply(error: error))
            }
            switch request.command {
            case .status, .watch: done(ControlReply())
            case .sync:
                let isOverBudget = request.argument == ControlRequest.overBudget
                gateway.sync(isOverBudget: isOverBudget) { done(Self.reply(to: $0)) }
            case .reload:
                gateway.reload()
                done(ControlReply(done: true))
            case .measure:
                questions.perform(done) {
                    var reply = ControlReply()
                    reply.figures = gateway.figures()
                    return reply
                }
            case .restart:
                restarts.perform(done) { Self.restart(request.argument, gateway) }
            case .quarantineList, .requeue, .drop, .resend, .audioMark, .surveyStart, .surveyStop,
                .surveyList:
                questions.perform(done) {
                    let (queue, configuration) = (gateway.queue, gateway.configuration)
                    return QueueRequestHandler(queue: queue, configuration: configuration)
                        .answer(request)
                }
            }
        }
    }

    /// `perform` executes any request but `status`.
    init(
        path: String,
        status: StatusPublication,
        limits: LineLimits = .dialogue,
        workers: [Worker] = [],
        perform: @escaping ControlHandler.Perform
    ) throws {
        let lines = try LineServer<ControlHandler>(
            path: path,
            name: "control socket",
            limits: limits
        )
        let isWatched = StateBox(false)
        (self.lines, self.workers, self.isWatched) = (lines, workers, isWatched)
        publications = status.publications.subscribe { _ in lines.wakeup.signal() }
        thread = try StoppableThread("control") {
            lines.run(until: $0, ControlHandler(lines, status, isWatched, perform))
        }
    }

    /// Pushes the status to watchers.
    package func changed() {
        let isNews = isWatched.update { isWatched in
            // The handler sets it again, so that few changes wait for a slow thread.
            defer { isWatched = false }
            return isWatched
        }
        if isNews { lines.post { $0.isOwed = true } }
    }

    /// Wakes the socket's thread once.
    package func ask() { lines.wakeup.signal() }

    /// Stops the threads; running work continues, but its reply is discarded.
    ///
    /// Returns false if the socket's thread hangs.
    @discardableResult package func stop(by deadline: BootInstant) -> Bool {
        for worker in workers { worker.stop() }
        return thread.stop(by: deadline)
    }

    private static func reply(to sync: SyncResult?) -> ControlReply {
        guard let sync else {
            return ControlReply(
                error: "there is nowhere to upload to: set upload.endpoint, or `waypost enroll`"
            )
        }
        var reply = ControlReply(done: sync.isDone)
        reply.sync = sync
        return reply
    }

    private static func restart(_ name: String?, _ gateway: any RunningGateway) -> ControlReply {
        guard let source = name.flatMap({ SourceName(rawValue: $0) }) else {
            let known = SourceName.allCases.map(\.rawValue).joined(separator: ", ")
            return ControlReply(error: "no source \"\((name ?? "").prefix(40))\": \(known)")
        }
        if let why = gateway.restart(source) { return ControlReply(error: why) }
        return ControlReply(done: true)
    }
}
