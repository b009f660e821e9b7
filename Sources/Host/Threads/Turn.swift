// A semaphore with a timeout.

/// A lock for one thread, or a few, at a time, which a caller can wait for with a timeout.
package final class Turn: Sendable {
    private let free: Condition<Int>

    /// `count`: how many threads have a turn at the same time.
    package init(_ count: Int = 1) { free = Condition(count) }

    /// Calls `body` while holding the lock.
    ///
    /// Not reentrant: do not call it from `body`.
    package func take<Result>(_ body: () throws -> Result) rethrows -> Result {
        free.wait(until: { $0 > 0 }) { $0 -= 1 }
        defer { give() }
        return try body()
    }

    /// Like the other, but returns nil if the lock was not free within `limit`.
    @discardableResult package func take<Result>(
        within limit: Duration,
        _ body: () throws -> Result
    ) rethrows -> Result? {
        let isTaken = free.wait(timeout: limit, until: { $0 > 0 }) { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
        guard isTaken else { return nil }
        defer { give() }
        return try body()
    }

    private func give() {
        free.withLock { $0 += 1 }
        free.signal()
    }
}
