// A thread's heartbeat, which tells a hung thread from a waiting one.
import Synchronization

/// The heartbeat of one thread: the call it is in, and when that call should return.
///
/// Written by the thread itself and read by any other; allocates nothing.
package final class Heartbeat: Sendable {
    /// The heartbeat at one point in time.
    package struct Word: Sendable {
        package var call: StaticString
        package var since: BootInstant
        /// When the call should return; nil: when somebody wakes the thread.
        package var due: BootInstant?

        package init(call: StaticString, since: BootInstant, due: BootInstant?) {
            self.call = call
            self.since = since
            self.due = due
        }

        /// Returns how long the call is overdue; zero or less if it is not.
        package func overdue(at now: BootInstant) -> Duration { due.map { now - $0 } ?? .zero }
    }

    /// The name reported while the thread is in no call.
    private static let ownCode: StaticString = "its own code"

    private let content = Mutex(
        Word(call: Heartbeat.ownCode, since: BootInstant(nanoseconds: 0), due: nil)
    )

    private let over = Atomic(false)

    package init() {}

    package var word: Word { content.withLock { $0 } }

    /// The thread has finished.
    package var hasEnded: Bool { over.load(ordering: .relaxed) }

    /// Records that the thread enters `call` and should return within `limit`; nil: when woken.
    package func enters(_ call: StaticString, for limit: Duration? = .zero) {
        let now = SystemClock().now()
        content.withLock { $0 = Word(call: call, since: now, due: limit.map { now + $0 }) }
    }

    /// Records that the call returned; the code that follows is short.
    package func returns() { enters(Self.ownCode) }

    /// Runs one call that may block, between `enters` and `returns`.
    package func during<Result>(
        _ call: StaticString,
        for limit: Duration? = .zero,
        _ body: () throws -> Result
    ) rethrows -> Result {
        enters(call, for: limit)
        defer { returns() }
        return try body()
    }

    /// Suspends the heartbeat: this thread waits for another monitored thread.
    package func rests() { enters(Self.ownCode, for: nil) }

    /// Records the end of the thread: nothing is expected of it from now on.
    package func ends() {
        over.store(true, ordering: .relaxed)
        rests()
    }

    /// Records a wake-up: a heartbeat is due from now on, unless the thread announced a later one.
    package func asked() {
        let now = SystemClock().now()
        content.withLock { word in
            guard !hasEnded else { return }
            word.due = word.due ?? now
        }
    }
}
