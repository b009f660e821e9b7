// The control plane: executes field commands in the running gateway.
import Host
import Queue
import Upload

/// The gateway's functions that commands call; only `restart` may block.
struct ControlActions: Sendable {
    /// Starts a sync and calls back when it ends; with nil if no server is configured.
    var sync: @Sendable (_ isOverBudget: Bool, @escaping @Sendable (SyncResult?) -> Void) -> Void
    var reload: @Sendable () -> Void
    /// Restarts a source, which may wait for its device; returns an error message or nil.
    var restart: @Sendable (SourceName) -> String?
    var configuration: @Sendable () -> Configuration
}

/// Runs the control socket, and one worker thread each for queue requests and restarts.
final class ControlPlane: Sendable {
    private let server: ControlServer
    let thread: StoppableThread
    private let questions: Worker
    private let restarts: Worker

    /// `inside`: returns the queue and the actions; nil while the gateway starts.
    init(
        path: String,
        status: StatusPublication,
        inside: @escaping @Sendable () -> EarlyControlServer.Inside?
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
    func changed() { server.changed() }

    /// Wakes the socket's thread once.
    func ask() { server.wakeup.signal() }

    /// Stops the threads; running work continues, but its reply is discarded.
    ///
    /// Returns false if the socket's thread hangs.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
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
