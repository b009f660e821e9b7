// A bounded queue from many threads to one.
import CLinux
import Glibc

/// A bounded FIFO queue; its one reader may wait with a deadline.
///
/// A patient element does not wake a reader that has a deadline: it waits to be read in a batch.
package final class Mailbox<Element: Sendable>: @unchecked Sendable {
    // Unchecked because `state` is guarded by a pthread mutex, which the compiler cannot see;
    // Synchronization.Mutex has no condition variable to wait on.
    private let state: UnsafeMutablePointer<State>
    private let limit: Int
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let filled: UnsafeMutablePointer<pthread_cond_t>

    /// The state guarded by the mutex; behind a pointer, which avoids the compiler's exclusivity
    /// checks.
    private struct State {
        var elements: [Element] = []
        /// An element must be read at once.
        var isHasty = false
        /// The reader has a deadline, so patient elements can wait for a batch.
        var isPatient = false
        var isClosed = false

        /// How many patient elements wake a reader with a deadline; they take a millisecond to
        /// handle.
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
        // A step of the wall clock must not shorten or extend a wait.
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

    /// Appends an element; returns false if the queue is full or closed.
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
        // After unlocking: otherwise each post would wake the reader twice, first only to wait for
        // the lock.
        if wakes { pthread_cond_signal(filled) }
        return true
    }

    /// Closes the queue and moves what is left to `rest`; every later `post` returns false.
    package func close(into rest: inout [Element]) {
        rest.removeAll()
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        state.pointee.isClosed = true
        swap(&state.pointee.elements, &rest)
    }

    /// Elements waiting to be read.
    package var count: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return state.pointee.elements.count
    }

    /// Moves all elements to `batch`; waits at most `timeout` for a first one (nil: for ever).
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
            // Only ETIMEDOUT ends the wait; after other wake-ups the condition is checked again.
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
