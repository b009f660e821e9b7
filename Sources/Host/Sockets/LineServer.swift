// A server of a Unix socket whose clients send lines and get an answer to each.

/// The limits on the clients of a line server.
package struct LineLimits: Sendable {
    /// The most clients connected at a time.
    package var clients = 256
    /// The limit per user, so that one user's programs leave room for others, mostly root's.
    package var clientsOfOneUser = Int.max
    /// A client that neither sends nor reads for this long is disconnected.
    package var idle = Duration.seconds(600)
    /// A client that reads none of its answers for this long is disconnected.
    package var stall = Duration.seconds(30)
    /// The time that a stop waits for answers that are on their way.
    package var stop = Duration.seconds(1)
    /// The most lines of a client without an answer, and the most bytes of unread answers.
    var unanswered = 1024
    var answerBytes = 128 << 10
    /// The most lines of a client that are handled per turn, and the bytes that are read.
    package var linesATurn = 256
    var readBytes = 16 << 10
    /// True: a client that exceeds a limit or ends its input is disconnected, and one that is idle
    /// makes room for a new one.
    ///
    /// False: backpressure makes a client wait, and one that ends its input gets all its answers.
    var isStrict = false

    /// For clients that send many lines ahead of the answers.
    package static let pipeline = Self()

    /// For clients that wait for each answer, with at most one more request on its way.
    package static let dialogue = Self(
        clientsOfOneUser: 224,
        idle: .seconds(60),
        stall: .seconds(10),
        stop: .zero,
        unanswered: 1,
        answerBytes: 4 << 20,
        linesATurn: 1,
        readBytes: 1024,
        isStrict: true
    )
}

/// Answers the lines of a socket's clients; used only by the server's thread, and must not block.
package protocol LineHandler: AnyObject {
    /// The connected clients; the server adds and removes them.
    var clients: [LineConnection] { get set }
    /// The length limit of a line in bytes.
    var longestLine: Int { get }
    /// False while no more lines can be handled; then none are read.
    var hasRoom: Bool { get }
    /// The time of the next `endTurn` if no client does anything before.
    var deadline: BootInstant? { get }
    /// True while a stop waits, within its limit, for answers that are on their way.
    var isBusy: Bool { get }

    /// Handles a line; now or later, `client.answer(number, …)` must be called.
    func handle(_ line: LineBuffer.Line, _ number: Int, of client: LineConnection)

    /// Called in each turn after the lines, before answers are sent.
    func endTurn(_ now: BootInstant)

    /// Returns the message to a client that finds `count` others and is disconnected.
    func refusal(beside count: Int) -> [UInt8]

    /// Called before the clients are disconnected.
    func stop()
}

/// Owns a listening socket and wakes the thread that serves it.
package final class LineServer<Handler: LineHandler>: Sendable {
    let limits: LineLimits
    let listener: UnixListener
    let clock: any HostClock
    /// Wakes the thread for a turn.
    package let wakeup: Wakeup
    private let jobs = StateBox([@Sendable (Handler) -> Void]())

    /// `name` is how an error names the socket: `control socket`.
    package init(
        path: String,
        name: String,
        limits: LineLimits,
        clock: any HostClock = SystemClock()
    ) throws {
        self.limits = limits
        self.clock = clock
        wakeup = try Wakeup()
        listener = try UnixListener(path: path, name: name, waiting: 256)
    }

    /// Serves clients until `stop` is raised; blocks only in poll.
    package func run(until stop: StopSignal, _ handler: Handler) {
        let loop = LineLoop(self, handler)
        while !stop.isRaised { loop.turn(stop) }
        listener.remove()
        loop.finish()
    }

    /// Has the server's thread call `job`; thread-safe.
    package func post(_ job: @escaping @Sendable (Handler) -> Void) {
        jobs.update { $0.append(job) }
        wakeup.signal()
    }

    func runJobs(on handler: Handler) {
        wakeup.clear()
        let posted = jobs.update { jobs in
            defer { jobs = [] }
            return jobs
        }
        for job in posted { job(handler) }
    }
}
