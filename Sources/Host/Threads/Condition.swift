// A lock, and a wait until the value under it has changed.
import CLinux
import Glibc

/// A value under a lock, for whose change a thread can wait (pthread_cond_wait(3)).
///
/// Synchronization's `Mutex` cannot be waited for, nor hand out a value that is not `Sendable`; it
/// is enough everywhere else.
package final class Condition<State>: @unchecked Sendable {
    // Unchecked because `state` is used only under `mutex`, which the compiler cannot see.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>
    /// Behind a pointer, which avoids the compiler's exclusivity checks.
    private let state: UnsafeMutablePointer<State>

    package init(_ value: State) {
        mutex = .allocate(capacity: 1)
        changed = .allocate(capacity: 1)
        state = .allocate(capacity: 1)
        state.initialize(to: value)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // A step of the wall clock must not shorten or extend a wait.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
        state.deinitialize(count: 1)
        state.deallocate()
    }

    /// Calls `body` under the lock; wakes nobody.
    package func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state.pointee)
    }

    /// Calls `body` under the lock, then wakes all threads that wait.
    @discardableResult
    package func change<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        defer { broadcast() }
        return try withLock(body)
    }

    /// Waits until `isMet` returns true, at most `timeout` (nil: for ever); then calls `body` under
    /// the same lock.
    package func wait<Result>(
        timeout: Duration? = nil,
        until isMet: (inout State) -> Bool,
        then body: (inout State) throws -> Result
    ) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        let deadline = timeout.map(Self.deadline)
        while !isMet(&state.pointee), timeout != .zero {
            guard var deadline else {
                pthread_cond_wait(changed, mutex)
                continue
            }
            // Only ETIMEDOUT ends the wait; after other wake-ups the condition is checked again.
            if pthread_cond_timedwait(changed, mutex, &deadline) == ETIMEDOUT { break }
        }
        return try body(&state.pointee)
    }

    /// Wakes one thread that waits.
    ///
    /// Call it without the lock: the thread would wake up only to wait for that.
    package func signal() { pthread_cond_signal(changed) }

    /// Wakes all threads that wait.
    package func broadcast() { pthread_cond_broadcast(changed) }

    private static func deadline(after timeout: Duration) -> timespec {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let total = Int64(now.tv_nsec) + max(0, timeout.nanoseconds)
        return timespec(
            tv_sec: now.tv_sec + Int(total / 1_000_000_000),
            tv_nsec: Int(total % 1_000_000_000)
        )
    }
}
