// What a thread says of itself, so that one that hangs can be told from one that waits.
import Synchronization

/// The last word of one thread: the call that it is in, and until when it means to be back.
///
/// Stamped by the thread itself and read by any other; nothing is allocated.
package final class Heartbeat: Sendable {
    /// The last word at some moment.
    package struct Word: Sendable {
        package var call: StaticString
        package var since: BootInstant
        /// nil: whenever somebody wakes it.
        package var due: BootInstant?

        package init(call: StaticString, since: BootInstant, due: BootInstant?) {
            self.call = call
            self.since = since
            self.due = due
        }

        /// How long it has been expected back; zero or less for one that is not late.
        package func overdue(at now: BootInstant) -> Duration { due.map { now - $0 } ?? .zero }
    }

    /// What stands for a call where there is none.
    private static let ownCode: StaticString = "its own code"

    private let content = Mutex(
        Word(call: Heartbeat.ownCode, since: BootInstant(nanoseconds: 0), due: nil)
    )

    private let over = Atomic(false)

    package init() {}

    package var word: Word { content.withLock { $0 } }

    /// Its thread has done its last act.
    package var hasEnded: Bool { over.load(ordering: .relaxed) }

    /// The thread is about to enter `call`, and means to be back within `limit`; nil: once it is woken.
    package func enters(_ call: StaticString, for limit: Duration? = .zero) {
        let now = SystemClock().now()
        content.withLock { $0 = Word(call: call, since: now, due: limit.map { now + $0 }) }
    }

    /// The call returned: what follows is not long.
    package func returns() { enters(Self.ownCode) }

    /// Makes one call that may block.
    package func during<Result>(
        _ call: StaticString,
        for limit: Duration? = .zero,
        _ body: () throws -> Result
    ) rethrows -> Result {
        enters(call, for: limit)
        defer { returns() }
        return try body()
    }

    /// Nothing is to be heard of it for now: it waits for a thread that is watched itself.
    package func rests() { enters(Self.ownCode, for: nil) }

    /// The thread's last act: asked or not, nothing is expected of it.
    package func ends() {
        over.store(true, ordering: .relaxed)
        rests()
    }

    /// The thread is being woken: it has to say something from now on, unless it said when it will be back.
    package func asked() {
        let now = SystemClock().now()
        content.withLock { word in
            guard !hasEnded else { return }
            word.due = word.due ?? now
        }
    }
}
