// A thread that can be asked to end.
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
        slot = Mutex(Slot(lane: try Lane(name) { body(signal) }))
    }

    /// Asks the body to end, without waiting.
    func raise() { signal.raise() }

    /// Asks the body to end and waits until it has.
    func stop() {
        signal.raise()
        guard let lane = slot.withLock({ $0.lane.take() }) else { return }
        lane.join()
    }
}
