// The open connections and their deadlines.
import Glibc
import Host

/// Ends connections that miss the deadline for a complete request.
///
/// libmicrohttpd's timeout restarts with each byte, so a slow client could hold a connection for
/// ever. A new connection has `brief` for its header, and for its body unless it brings a good
/// token. With one, a body has `patience`, and more with each byte received, but the deadline is
/// never more than `longest` ahead.
final class Connections: Sendable {
    private struct State {
        /// The deadline of each connection; nil when nothing is expected of the client.
        var deadlines:
            [OpaquePointer: (socket: Int32, network: String, end: ContinuousClock.Instant?)] = [:]
        var isStopping = false

        /// The time to the next deadline, at most `limit`.
        func pause(atMost limit: Duration) -> Duration {
            let now = ContinuousClock.now
            return min(
                deadlines.values.compactMap(\.end).filter { $0 > now }.min().map { $0 - now }
                    ?? limit,
                limit
            )
        }

        /// Shuts overdue sockets down; the daemon notices and closes them.
        func endOverdue() {
            let now = ContinuousClock.now
            for case (_, (let socket, _, let end?)) in deadlines where end <= now {
                shutdown(socket, Int32(SHUT_RDWR))
            }
        }
    }

    /// Bytes per second; a slower body is aborted.
    static let slowest = 256

    private let state = Condition(State())
    let patience: Duration
    private let brief: Duration
    private let longest: Duration
    /// Connections from one network (`clientNetwork`); 0 for no limit.
    private let perNetwork: Int

    /// Throws a `SystemError` if its thread cannot be started.
    init(patience: Duration, brief: Duration, longest: Duration, perNetwork: Int) throws {
        self.perNetwork = perNetwork
        self.patience = patience
        self.brief = min(patience, brief)
        self.longest = max(patience, longest)
        try OwnThread("deadlines") { [self] in run() }.detach()
    }

    var count: Int { state.withLock { $0.deadlines.count } }

    /// Starts a deadline: for a new connection, the next request, or a known client's body.
    ///
    /// A new connection that is one too many from its network is ended at once.
    func start(_ connection: HTTPConnection, isKnown: Bool = true) {
        let (socket, network) = (connection.socket, clientNetwork(connection.address))
        let end = ContinuousClock.now + (isKnown ? patience : brief)
        state.withLock { state in
            let isNew = state.deadlines[connection.handle] == nil
            let others = state.deadlines.values.count { $0.network == network }
            let isTooMany = isNew && perNetwork > 0 && others >= perNetwork
            if isTooMany { shutdown(socket, Int32(SHUT_RDWR)) }
            state.deadlines[connection.handle] = (socket, isTooMany ? "" : network, end)
        }
    }

    /// Extends the deadline after bytes of the body arrived.
    func give(_ connection: HTTPConnection, timeFor count: Int) {
        let more = Duration.seconds(1) * count / Self.slowest
        state.withLock { state in
            guard let end = state.deadlines[connection.handle]?.end else { return }
            let latest = ContinuousClock.now + longest
            state.deadlines[connection.handle]?.end = min(end + more, latest)
        }
    }

    /// Clears the deadline: the request is complete.
    func stop(_ connection: HTTPConnection) {
        state.withLock { $0.deadlines[connection.handle]?.end = nil }
    }

    /// Called before the socket is closed.
    func forget(_ connection: HTTPConnection) {
        state.withLock { $0.deadlines[connection.handle] = nil }
    }

    func finish() { state.change { $0.isStopping = true } }

    private func run() {
        var isStopping = false
        while !isStopping {
            // A deadline added during the wait is never earlier than `brief` from now.
            let pause = state.withLock { $0.pause(atMost: brief) } + .milliseconds(10)
            isStopping = state.wait(timeout: pause, until: { $0.isStopping }) { state in
                state.endOverdue()
                return state.isStopping
            }
        }
    }
}
