// The open connections and their deadlines.
import Foundation
import Glibc

/// Ends connections that miss the deadline for a complete request.
///
/// libmicrohttpd's timeout restarts with each byte, so a slow client could hold a connection for
/// ever. A new connection has `brief` for its header, and for its body unless it brings a good
/// token. With one, a body has `patience`, and more with each byte received, but the deadline is
/// never more than `longest` ahead.
final class Connections: @unchecked Sendable {
    // Unchecked because everything mutable is used under `condition`.
    /// Bytes per second; a slower body is aborted.
    static let slowest = 256

    private let condition = NSCondition()
    let patience: Duration
    private let brief: Duration
    private let longest: Duration
    /// Connections from one network (`clientNetwork`); 0 for no limit.
    private let perNetwork: Int
    /// The deadline of each connection; nil when nothing is expected of the client.
    private var deadlines:
        [OpaquePointer: (socket: Int32, network: String, end: ContinuousClock.Instant?)] = [:]
    private var isStopping = false

    init(patience: Duration, brief: Duration, longest: Duration, perNetwork: Int) {
        self.perNetwork = perNetwork
        self.patience = patience
        self.brief = min(patience, brief)
        self.longest = max(patience, longest)
        Thread.detachNewThread { [self] in run() }
    }

    var count: Int { condition.withLock { deadlines.count } }

    /// Starts a deadline: for a new connection, the next request, or a known client's body.
    ///
    /// A new connection that is one too many from its network is ended at once.
    func start(_ connection: HTTPConnection, isKnown: Bool = true) {
        let (socket, network) = (connection.socket, clientNetwork(connection.address))
        let end = ContinuousClock.now + (isKnown ? patience : brief)
        condition.withLock {
            let isNew = deadlines[connection.handle] == nil
            let others = deadlines.values.count { $0.network == network }
            let isTooMany = isNew && perNetwork > 0 && others >= perNetwork
            if isTooMany { shutdown(socket, Int32(SHUT_RDWR)) }
            deadlines[connection.handle] = (socket, isTooMany ? "" : network, end)
        }
    }

    /// Extends the deadline after bytes of the body arrived.
    func give(_ connection: HTTPConnection, timeFor count: Int) {
        let more = Duration.seconds(1) * count / Self.slowest
        condition.withLock {
            guard let end = deadlines[connection.handle]?.end else { return }
            let latest = ContinuousClock.now + longest
            deadlines[connection.handle]?.end = min(end + more, latest)
        }
    }

    /// Clears the deadline: the request is complete.
    func stop(_ connection: HTTPConnection) {
        condition.withLock { deadlines[connection.handle]?.end = nil }
    }

    /// Called before the socket is closed.
    func forget(_ connection: HTTPConnection) {
        condition.withLock { deadlines[connection.handle] = nil }
    }

    func finish() {
        condition.withLock {
            isStopping = true
            condition.broadcast()
        }
    }

    private func run() {
        condition.withLock {
            while !isStopping {
                // A deadline added during the wait is never earlier than `brief` from now.
                let now = ContinuousClock.now
                let next = deadlines.values.compactMap(\.end).filter { $0 > now }.min()
                let pause = min(next ?? now + brief, now + brief) - now
                _ = condition.wait(until: Date(timeIntervalSinceNow: pause / .seconds(1) + 0.01))
                endOverdue()
            }
        }
    }

    /// Shuts overdue sockets down; the daemon notices and closes them.
    private func endOverdue() {
        let now = ContinuousClock.now
        for case (_, (let socket, _, let end?)) in deadlines where end <= now {
            shutdown(socket, Int32(SHUT_RDWR))
        }
    }
}
