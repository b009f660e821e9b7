// A flag that a signal's handler sets.
import Synchronization

/// Set once, read from anywhere.
final class StopFlag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }

    func set() { value.store(true, ordering: .releasing) }
}
