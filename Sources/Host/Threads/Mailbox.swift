// A bounded queue from many threads to one.
import CLinux
import Glibc

/// A first-in first-out queue with a limit; the one reader may wait on it with a deadline.
///
/// A patient element does not wake a reader that has a deadline: it waits for company.
package final class Mailbox<Element: Sendable>: @unchecked Sendable {
    // Unchecked because `state` is guarded by a pthread mutex, which the compiler cannot see;
    // Synchronization.Mutex has no condition variable to wait on.
    private let state: UnsafeMutablePointer<State>
    private let limit: Int
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let filled: UnsafeMutablePointer<pthread_cond_t>

    /// What the mutex guards; behind a pointer, for the compiler need not look after it once more.
    private struct State {
        var elements: [Element] = []
        /// Whether one of them is to be seen at once.
        var isHasty = false
        /// Whether the reader waits for company, too.
        var isPatient = false
        var isClosed = false

        /// Patient elements that wake a reader with a deadline: few enough to be handled in a millisecond.
        static var company: Int { 256 }

        var isEnough: Bool {
            isPatient && !isHasty ? elements.count >= Self.company : !elements.isEmpty
        }
    }

    package init(limit: Int) {
        self.limit = limit
        state = .allocate(capacity: 1)
        state.initialize(to: State())
        mutex = .allocate(capacity: 1)
        filled = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // Waits must not be cut short or drawn out by a step of the wall clock.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(filled, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(filled)
        pthread_mutex_destroy(mutex)
        filled.deallocate()
        mutex.deallocate()
        state.deinitialize(count: 1)
        state.deallocate()
    }

    /// Appends unless the queue is at its limit; false then.
    ///
    /// `urgent` ignores the limit; `patient` may wait until the reader's deadline.
    package func post(_ element: Element, urgent: Bool = false, patient: Bool = false) -> Bool {
        pthread_mutex_lock(mutex)
        guard !state.pointee.isClosed, urgent || state.pointee.elements.count < limit else {
            pthread_mutex_unlock(mutex)
            return false
        }
        let wasEnough = state.pointee.isEnough
        state.pointee.elements.append(element)
        if !patient { state.pointee.isHasty = true }
        let wakes = !wasEnough && state.pointee.isEnough
        pthread_mutex_unlock(mutex)
        // Not under the lock: the reader would wake up only to wait for it, once more a wake-up for each.
        if wakes { pthread_cond_signal(filled) }
        return true
    }

    /// Takes what is left; every later `post` returns false.
    package func close(into rest: inout [Element]) {
        rest.removeAll()
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        state.pointee.isClosed = true
        swap(&state.pointee.elements, &rest)
    }

    /// Elements that wait to be taken.
    package var count: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return state.pointee.elements.count
    }

    /// Takes all there is, waiting for a first element at most `timeout` (nil: for ever).
    package func takeAll(into batch: inout [Element], timeout: Duration?) {
        batch.removeAll(keepingCapacity: true)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        let deadline = timeout.map(Self.deadline)
        state.pointee.isPatient = deadline != nil
        while !state.pointee.isEnough, timeout != .zero {
            guard var deadline else {
                pthread_cond_wait(filled, mutex)
                continue
            }
            // Only ETIMEDOUT ends the wait; other wake-ups look again.
            if pthread_cond_timedwait(filled, mutex, &deadline) == ETIMEDOUT { break }
        }
        state.pointee.isHasty = false
        swap(&state.pointee.elements, &batch)
    }

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
