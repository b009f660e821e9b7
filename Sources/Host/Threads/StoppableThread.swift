// A thread that can be asked to end, and given up if it does not.
import Synchronization

/// A thread with the signal that ends it.
package final class StoppableThread: Sendable {
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

    /// The last word of its thread.
    package var life: Heartbeat { signal.life }

    /// Asks the body to end, without waiting.
    package func raise() { signal.raise() }

    /// Asks the body to end; false if it had not by `deadline`.
    ///
    /// Its thread is left to itself then, with its descriptors and whatever else it holds.
    @discardableResult package func stop(by deadline: BootInstant) -> Bool {
        signal.raise()
        guard let thread = slot.withLock({ $0.thread.take() }) else { return true }
        return thread.join(within: deadline - SystemClock().now())
    }
}
