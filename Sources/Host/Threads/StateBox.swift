// A value shared by several threads.
import Synchronization

/// One value guarded by a lock.
package final class StateBox<Value: Sendable>: Sendable {
    private let content: Mutex<Value>

    /// Consumes the value, because without that Debian's Swift 6.0.3 crashes here in a debug build.
    package init(_ value: consuming Value) {
        content = Mutex(value)
    }

    package var value: Value { content.withLock { $0 } }

    @discardableResult
    package func update<Result: Sendable>(_ change: (inout Value) -> Result) -> Result {
        content.withLock { change(&$0) }
    }

    /// Replaces the value; returns the one before.
    @discardableResult
    package func replace(with value: Value) -> Value {
        update { old in
            defer { old = value }
            return old
        }
    }
}
