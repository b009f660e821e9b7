// The board: the latest state of everything, the only way state leaves a component.
internal import Synchronization

/// What is known of a value.
///
/// Every reader switches over all four.
package enum BoardState<Value: Sendable>: Sendable {
    case unknown
    /// Being (re)started; the value before, if there was one.
    case loading(previous: Value?)
    case loaded(Value)
    /// Not working; the value before, if there was one.
    case error(Failure, previous: Value?)

    /// The newest value, current or from before.
    package var value: Value? {
        switch self {
        case .unknown: nil
        case .loading(let previous), .error(_, let previous): previous
        case .loaded(let value): value
        }
    }
}

/// Keeps a subscription alive: when it goes, its handler is never called again.
package final class Subscription: Sendable {
    fileprivate let call: @Sendable () -> Void

    fileprivate init(_ call: @escaping @Sendable () -> Void) {
        self.call = call
    }
}

/// Holds the latest state of one thing and tells its subscribers of each change.
package final class Publisher<Value: Sendable>: Sendable {
    private struct Content {
        var state: BoardState<Value> = .unknown
        var subscribers: [Weak] = []

        /// Returns who is to be told, once the lock is released.
        mutating func replace(with state: BoardState<Value>) -> [Subscription] {
            self.state = state
            subscribers.removeAll { $0.subscription == nil }
            return subscribers.compactMap(\.subscription)
        }
    }

    private struct Weak: Sendable {
        weak var subscription: Subscription?
    }

    private let content = Mutex(Content())

    package init() {}

    package var state: BoardState<Value> { content.withLock { $0.state } }

    /// Replaces the state and calls each subscriber on this thread; handlers must not block.
    package func publish(_ state: BoardState<Value>) {
        notify(content.withLock { $0.replace(with: state) })
    }

    package func loaded(_ value: Value) { publish(.loaded(value)) }

    /// Starting again: keeps the value before.
    package func loading() {
        notify(content.withLock { $0.replace(with: .loading(previous: $0.state.value)) })
    }

    /// Not working: keeps the value before.
    package func failed(_ failure: Failure) {
        notify(content.withLock { $0.replace(with: .error(failure, previous: $0.state.value)) })
    }

    /// Calls `handler` with the current state at once and with each later one while the result lives.
    package func subscribe(
        _ handler: @escaping @Sendable (BoardState<Value>) -> Void
    ) -> Subscription {
        let subscription = Subscription { [weak self] in
            guard let self else { return }
            handler(self.state)
        }
        content.withLock { $0.subscribers.append(Weak(subscription: subscription)) }
        subscription.call()
        return subscription
    }

    private func notify(_ subscribers: [Subscription]) {
        for subscriber in subscribers { subscriber.call() }
    }
}
