// A thread that can be asked to end, and given up if it does not.
internal import Host
internal import Synchronization

/// A lane with the signal that ends it.
final class StoppableLane: Sendable {
    private struct Slot: ~Copyable {
        var lane: Lane?
    }

    private let signal: StopSignal
    private let slot: Mutex<Slot>

    init(_ name: String, _ body: @escaping @Sendable (StopSignal) -> Void) throws {
        let signal = try StopSignal()
        self.signal = signal
        slot = Mutex(
            Slot(
                lane: try Lane(name) {
                    body(signal)
                    signal.life.ends()
                }
            )
        )
    }

    /// The last word of its thread.
    var life: LifeSign { signal.life }

    /// Asks the body to end, without waiting.
    func raise() { signal.raise() }

    /// Asks the body to end and waits until it has.
    func stop() {
        signal.raise()
        guard let lane = slot.withLock({ $0.lane.take() }) else { return }
        lane.join()
    }

    /// Asks the body to end; false if it had not by `deadline`.
    ///
    /// Its thread is left to itself then, with its descriptors and whatever else it holds.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
        signal.raise()
        guard let lane = slot.withLock({ $0.lane.take() }) else { return true }
        return lane.join(within: deadline - SystemClock().now())
    }
}
