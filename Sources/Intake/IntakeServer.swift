// The intake socket, which receives records of other programs and answers once they are on disk.
package import Host
import Records
package import Setup

/// Counts of the socket since it was opened.
package struct IntakeFigures: Sendable, Equatable {
    package var clients = 0
    package var accepted = 0
    package var refused = 0
}

/// Serves the socket on one thread; `declare` and `figures` are thread-safe.
final class IntakeServer: Sendable {
    struct Limits: Sendable {
        /// The most programs connected at a time.
        var clients = 256
        /// A program that neither sends nor reads for this long is disconnected.
        var idle = Duration.seconds(600)
        /// A program that reads no answers for this long is disconnected.
        var stall = Duration.seconds(30)
        /// The time that a stop waits for the batch being written.
        var stop = Duration.seconds(1)
    }

    let limits: Limits
    let listener: UnixListener
    let sink: any IntakeSink
    let clock: any HostClock
    let wakeup: Wakeup
    let figures = StateBox(IntakeFigures())
    private let declared: StateBox<[UserStream]?>
    private let finished = StateBox([IntakeOutcome]())

    init(
        path: String,
        streams: [UserStream],
        sink: any IntakeSink,
        clock: any HostClock,
        limits: Limits = Limits()
    ) throws {
        self.sink = sink
        self.clock = clock
        self.limits = limits
        wakeup = try Wakeup()
        declared = StateBox(streams)
        listener = try UnixListener(path: path, name: "intake socket", waiting: 256)
    }

    /// Blocks until `stop` is raised.
    ///
    /// Answers the batch given to the sink by then if it is committed within `Limits.stop`.
    func run(until stop: StopSignal) {
        let intake = IntakeLoop(self)
        while !stop.isRaised { intake.turn(stop) }
        listener.remove()
        intake.finish()
    }

    /// Sets the streams that are accepted from now on; programs stay connected.
    package func declare(_ streams: [UserStream]) {
        declared.update { $0 = streams }
        wakeup.signal()
    }

    // MARK: For the loop

    /// Returns the streams declared since the last call, or nil.
    func takeDeclared() -> [UserStream]? {
        declared.update { declared in
            defer { declared = nil }
            return declared
        }
    }

    /// Gives a batch to the sink; `takeFinished` returns its outcome.
    func put(_ records: [UserRecord], batch: Int) {
        let (finished, wakeup) = (finished, wakeup)
        sink.put(records) { error in
            let reason = error.map { "\($0)" }
            finished.update { $0.append(IntakeOutcome(batch: batch, reason: reason)) }
            wakeup.signal()
        }
    }

    func takeFinished() -> [IntakeOutcome] {
        finished.update { finished in
            defer { finished = [] }
            return finished
        }
    }
}

/// The outcome of a batch; `reason` is nil if it is on disk.
struct IntakeOutcome: Sendable {
    var batch: Int
    var reason: String?
}

/// The intake of a running gateway; its socket exists while streams are declared.
///
/// `declare` and `stop` must not be called concurrently.
package final class IntakeService: Sendable {
    private let path: String
    private let sink: any IntakeSink
    private let clock: any HostClock
    private let running = StateBox<(server: IntakeServer, thread: StoppableThread)?>(nil)

    static let fileName = "intake"

    package init(directory: String, sink: any IntakeSink, clock: any HostClock) {
        path = "\(directory)/\(Self.fileName)"
        self.sink = sink
        self.clock = clock
    }

    package var figures: IntakeFigures? { running.value?.server.figures.value }

    /// The last heartbeat of its thread; nil while nothing is declared.
    package var word: Heartbeat.Word? { running.value?.thread.life.word }

    /// Wakes its thread once.
    package func ask() {
        guard let running = running.value else { return }
        running.thread.life.asked()
        running.server.wakeup.signal()
    }

    /// Accepts records of exactly these streams from now on.
    package func declare(_ streams: [UserStream]) throws {
        if streams.isEmpty {
            stop(by: SystemClock().now() + StoppableThread.stopLimit)
            return
        }
        if let running = running.value { return running.server.declare(streams) }
        let server = try IntakeServer(path: path, streams: streams, sink: sink, clock: clock)
        let thread = try StoppableThread("intake") { server.run(until: $0) }
        running.update { $0 = (server, thread) }
    }

    /// Stops the thread; false if it hangs and was abandoned.
    @discardableResult package func stop(by deadline: BootInstant) -> Bool {
        let thread = running.value?.thread
        defer { running.update { $0 = nil } }
        return thread?.stop(by: deadline) ?? true
    }
}
