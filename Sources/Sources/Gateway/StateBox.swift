// A value that several threads read and change.
internal import Synchronization

/// A lock around one value.
final class StateBox<Value: Sendable>: Sendable {
    private let content: Mutex<Value>

    init(_ value: Value) {
        content = Mutex(value)
    }

    var value: Value { content.withLock { $0 } }

    @discardableResult
    func update<Result: Sendable>(_ change: (inout Value) -> Result) -> Result {
        content.withLock { change(&$0) }
    }
}
