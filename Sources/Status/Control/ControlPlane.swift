// The control plane: executes field commands in the running gateway.
package import Host
package import Queue
package import Setup
package import Upload

/// The gateway's functions that commands call; only `restart` may block.
package struct ControlActions: Sendable {
    /// Starts a sync and calls back when it ends; with nil if no server is configured.
    package var sync:
        @Sendable (_ isOverBudget: Bool, @escaping @Sendable (SyncResult?) -> Void) -> Void
    package var reload: @Sendable () -> Void
    /// Restarts a source, which may wait for its device; returns an error message or nil.
    package var restart: @Sendable (SourceName) -> String?
    package var configuration: @Sendable () -> Configuration

    package init(
        sync:
            @escaping @Sendable (_ isOverBudget: Bool, @escaping @Sendable (SyncResult?) -> Void) ->
            Void,
        reload: @escaping @Sendable () -> Void,
        restart: @escaping @Sendable (SourceName) -> String?,
        configuration: @escaping @Sendable () -> Configuration
    ) {
        self.sync = sync
        self.reload = reload
        self.restart = restart
        self.configuration = configuration
    }
}

/// The parts that answer the commands.
package struct RunningGateway: Sendable {
    package var queue: Queue
    package var actions: ControlActions
    /// Makes the collector of the present report.
    package var collector: @Sendable () -> StatusCollector

    package init(
        queue: Queue,
        actions: ControlActions,
        collector: @escaping @Sendable () -> StatusCollector
    ) {
        self.queue = queue
        self.actions = actions
        self.collector = collector
    }
}

/// Runs the control socket, and one worker thread each for queue requests and restarts.
package final class ControlPlane: Sendable {
    private let server: ControlServer
    package let thread: StoppableThread
    private let questions: Worker
    private let restarts: Worker

    /// `inside`: returns the queue and the actions; nil while the gateway starts.
    package init(
        path: String,
        status: StatusPublication,
        inside: @escaping @Sendable () -> RunningGateway?
    ) throws {
        let (questions, restarts) = (try Worker("control-queue"), try Worker("control-source"))
        self.questions = questions
        self.restarts = restarts
        let server = try ControlServer(path: path, status: status) { request, done in
            guard let (queue, actions) = inside().map({ ($0.queue, $0.actions) }) else {
                let error = "waypost is starting; `waypost status` says what it waits for"
                return done(ControlReply(error: error))
            }
            switch request.command {
            case .status, .watch: done(ControlReply())
            case .sync:
                let isOverBudget = request.argument == ControlRequest.overBudget
                actions.sync(isOverBudget) { done(Self.reply(to: $0)) }
            case .reload:
                actions.reload()
                done(ControlReply(done: true))
            case .restart:
                restarts.perform(done) { Self.restart(request.argument, actions) }
            case .quarantineList, .requeue, .drop, .resend, .surveyStart, .surveyStop, .surveyList:
                questions.perform(done) {
                    QueueRequestHandler(queue: queue, configuration: actions.configuration())
                        .answer(request)
                }
            }
        }
        self.server = server
        thread = try StoppableThread("control") { server.run(until: $0) }
    }

    /// Pushes the status to watchers.
    package func changed() { server.changed() }

    /// Wakes the socket's thread once.
    package func ask() { server.wakeup.signal() }

    /// Stops the threads; running work continues, but its reply is discarded.
    ///
    /// Returns false if the socket's thread hangs.
    @discardableResult package func stop(by deadline: BootInstant) -> Bool {
        questions.stop()
        restarts.stop()
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

    private static func restart(_ name: String?, _ actions: ControlActions) -> ControlReply {
        guard let source = name.flatMap({ SourceName(rawValue: $0) }) else {
            let known = SourceName.allCases.map(\.rawValue).joined(separator: ", ")
            return ControlReply(error: "no source \"\((name ?? "").prefix(40))\": \(known)")
        }
        if let why = actions.restart(source) { return ControlReply(error: why) }
        return ControlReply(done: true)
    }
}
