// The connections that are open, and how long each has had for its header.
import Foundation
import Glibc

/// Ends connections whose header does not become whole: libmicrohttpd's own time-out starts anew with each byte.
final class Connections: @unchecked Sendable {
    // Unchecked because everything that changes is under `condition`.
    private let condition = NSCondition()
    private let patience: Duration
    /// Until when each has to show a header; nil once it has.
    private var deadlines: [OpaquePointer: (socket: Int32, end: ContinuousClock.Instant?)] = [:]
    private var isStopping = false

    init(patience: Duration) {
        self.patience = patience
        Thread.detachNewThread { [self] in run() }
    }

    var count: Int { condition.withLock { deadlines.count } }

    /// It is new, or its last request is over.
    func awaitHeader(_ connection: HTTPConnection) {
        let entry = (connection.socket, ContinuousClock.now + patience)
        condition.withLock { deadlines[connection.handle] = entry }
    }

    func hasHeader(_ connection: HTTPConnection) {
        condition.withLock { deadlines[connection.handle]?.end = nil }
    }

    /// Its socket is about to be closed.
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
                // No deadline that comes meanwhile is earlier than `patience` from now.
                let now = ContinuousClock.now
                let next = deadlines.values.compactMap(\.end).filter { $0 > now }.min()
                let pause = (next ?? now + patience) - now
                _ = condition.wait(until: Date(timeIntervalSinceNow: pause / .seconds(1) + 0.01))
                endOverdue()
            }
        }
    }

    /// The daemon sees the end of the connection, and closes it.
    private func endOverdue() {
        let now = ContinuousClock.now
        for case (_, (let socket, let end?)) in deadlines where end <= now {
            shutdown(socket, Int32(SHUT_RDWR))
        }
    }
}
