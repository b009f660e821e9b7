// The connections that are open, and how long each has for what is to come.
import Foundation
import Glibc

/// Ends connections whose header does not become whole, or that do not take a part of an answer that goes on:
/// libmicrohttpd's own time-out starts anew with each byte.
final class Connections: @unchecked Sendable {
    // Unchecked because everything that changes is under `condition`.
    private let condition = NSCondition()
    let patience: Duration
    /// Until when each has to be done with it; nil once it is.
    private var deadlines: [OpaquePointer: (socket: Int32, end: ContinuousClock.Instant?)] = [:]
    private var isStopping = false

    init(patience: Duration) {
        self.patience = patience
        Thread.detachNewThread { [self] in run() }
    }

    var count: Int { condition.withLock { deadlines.count } }

    /// It is new, its last request is over, or a part of its answer is there.
    func start(_ connection: HTTPConnection) {
        let entry = (connection.socket, ContinuousClock.now + patience)
        condition.withLock { deadlines[connection.handle] = entry }
    }

    /// Its header is whole, or the part was taken.
    func stop(_ connection: HTTPConnection) {
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
