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

/// A socket for records of the declared streams; thread-safe.
final class IntakeServer: Sendable {
    let lines: LineServer<IntakeHandler>
    let sink: any IntakeSink
    let clock: any HostClock
    let figures = StateBox(IntakeFigures())
    private let streams: [UserStream]

    init(
        path: String,
        streams: [UserStream],
        sink: any IntakeSink,
        clock: any HostClock,
        limits: LineLimits = .pipeline
    ) throws {
        (self.streams, self.sink, self.clock) = (streams, sink, clock)
        lines = try LineServer(path: path, name: "intake socket", limits: limits, clock: clock)
    }

    /// Blocks until `stop` is raised.
    ///
    /// Answers the batch given to the sink by then if it is committed within `LineLimits.stop`.
    func run(until stop: StopSignal) { lines.run(until: stop, IntakeHandler(self, streams)) }

    /// Sets the streams that are accepted from now on; programs stay connected.
    func declare(_ streams: [UserStream]) { lines.post { $0.declare(streams) } }
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
        running.server.lines.wakeup.signal()
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
