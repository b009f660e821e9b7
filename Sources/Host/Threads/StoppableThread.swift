// A thread that can be asked to stop, and abandoned if it does not.
import Synchronization

/// A thread and the signal that stops it.
package final class StoppableThread: Sendable {
    /// The time that a part of the gateway has to stop before it is abandoned.
    package static let stopLimit = Duration.seconds(2)

    private struct Slot: ~Copyable {
        var thread: OwnThread?
    }

    private let signal: StopSignal
    private let slot: Mutex<Slot>

    package init(_ name: String, _ body: @escaping @Sendable (StopSignal) -> Void) throws {
        let signal = try StopSignal()
        self.signal = signal
        slot = Mutex(
            Slot(
                thread: try OwnThread(name) {
                    body(signal)
                    signal.life.ends()
                }
            )
        )
    }

    /// The heartbeat of its thread.
    package var life: Heartbeat { signal.life }

    /// Asks the body to stop, without waiting.
    package func raise() { signal.raise() }

    /// Asks the body to stop; returns false if it has not returned by `deadline`.
    ///
    /// The thread is then abandoned, with its descriptors and everything else it holds.
    @discardableResult package func stop(by deadline: BootInstant) -> Bool {
        signal.raise()
        guard let thread = slot.withLock({ $0.thread.take() }) else { return true }
        return thread.join(within: deadline - SystemClock().now())
    }
}
