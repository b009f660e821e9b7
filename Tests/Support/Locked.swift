internal import Foundation

/// A value behind a lock.
package final class Locked<Value: Sendable>: @unchecked Sendable {
    // Unchecked because every access is under `lock`.
    private var content: Value
    private let lock = NSLock()

    package init(_ value: Value) {
        content = value
    }

    package var value: Value { lock.withLock { content } }

    @discardableResult
    package func update<Result>(_ change: (inout Value) -> Result) -> Result {
        lock.withLock { change(&content) }
    }
}
