// A lock with a timeout.
import CLinux
import Glibc

/// A lock for one thread at a time, which a caller can wait for with a timeout.
package final class Turn: Sendable {
    /// An eventfd: readable while nobody has the turn.
    private let token: Descriptor

    package init() throws {
        let number = eventfd(1, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard number >= 0 else { throw SystemError.last("eventfd") }
        token = Descriptor(owning: number)
    }

    /// Calls `body` while holding the lock; returns nil if it was not free within `limit` (nil: for
    /// ever).
    ///
    /// Not reentrant: do not call it from `body`.
    @discardableResult package func take<Result>(
        within limit: Duration? = nil,
        _ body: () throws -> Result
    ) rethrows -> Result? {
        guard isTaken(within: limit) else { return nil }
        defer {
            var one: UInt64 = 1
            _ = write(token.number, &one, 8)
        }
        return try body()
    }

    private func isTaken(within limit: Duration?) -> Bool {
        let deadline = limit.map { SystemClock().now() + $0 }
        while true {
            var count: UInt64 = 0
            if read(token.number, &count, 8) == 8 { return true }
            let left = deadline.map { $0 - SystemClock().now() }
            if let left, left <= .zero { return false }
            var entries = [PollEntry(token.number)]
            _ = wait(for: &entries, timeout: left)
        }
    }
}
