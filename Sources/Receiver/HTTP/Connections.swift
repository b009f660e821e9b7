// The connections that are open, and how long each has for what is to come.
import Foundation
import Glibc

/// Ends connections whose request does not become whole in time, or that do not take a part of an answer that goes
/// on: libmicrohttpd's own time-out starts anew with each byte.
///
/// A new connection has `brief` for its header, and for its body unless a good token came with it. With
/// one, a body has `patience`, and more with each byte that comes, but never more than `longest` ahead.
final class Connections: @unchecked Sendable {
    // Unchecked because everything that changes is under `condition`.
    /// Bytes per second; a body that comes more slowly is given up.
    static let slowest = 256

    private let condition = NSCondition()
    let patience: Duration
    private let brief: Duration
    private let longest: Duration
    /// Until when each has to be done with it; nil once it is.
    private var deadlines: [OpaquePointer: (socket: Int32, end: ContinuousClock.Instant?)] = [:]
    private var isStopping = false

    init(patience: Duration, brief: Duration, longest: Duration) {
        self.patience = patience
        self.brief = min(patience, brief)
        self.longest = max(patience, longest)
        Thread.detachNewThread { [self] in run() }
    }

    var count: Int { condition.withLock { deadlines.count } }

    /// It is new, its last request is over, the header of a known client is there, or a part of its answer.
    func start(_ connection: HTTPConnection, isKnown: Bool = true) {
        let entry = (connection.socket, ContinuousClock.now + (isKnown ? patience : brief))
        condition.withLock { deadlines[connection.handle] = entry }
    }

    /// Some bytes of its body have come.
    func give(_ connection: HTTPConnection, timeFor count: Int) {
        let more = Duration.seconds(1) * count / Self.slowest
        condition.withLock {
            guard let entry = deadlines[connection.handle], let end = entry.end else { return }
            let latest = ContinuousClock.now + longest
            deadlines[connection.handle] = (entry.socket, min(end + more, latest))
        }
    }

    /// Its request is whole, or the part was taken.
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
                // No deadline that comes meanwhile is earlier than `brief` from now.
                let now = ContinuousClock.now
                let next = deadlines.values.compactMap(\.end).filter { $0 > now }.min()
                let pause = min(next ?? now + brief, now + brief) - now
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
