// The board: the latest state of everything, the only way state leaves a component.
package import Host
import Synchronization

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

/// Keeps a subscription alive: once it is gone, no call of its handler begins.
package final class Subscription: Sendable {
    private let end: @Sendable () -> Void

    fileprivate init(_ end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    deinit {
        end()
    }
}

/// Holds the latest state of one thing and tells its subscribers of each change.
///
/// A subscriber always ends with the newest state. Changes that come while its handler runs, from another
/// thread or from the handler itself, are one call afterwards with the newest of them.
package final class Publisher<Value: Sendable>: Sendable {
    package typealias Handler = @Sendable (BoardState<Value>) -> Void

    private struct Content {
        var state: BoardState<Value> = .unknown
        var listeners: [Listener<Value>] = []

        /// Returns who is to be told, once the lock is released.
        mutating func replace(with state: BoardState<Value>) -> [Listener<Value>] {
            self.state = state
            listeners.removeAll(where: \.hasEnded)
            return listeners
        }
    }

    private let content = Mutex(Content())

    package init() {}

    package var state: BoardState<Value> { content.withLock { $0.state } }

    /// Replaces the state and calls each subscriber, on this thread or on one that is calling it already.
    ///
    /// No lock is held in a handler; handlers must not block.
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
    ///
    /// The handler and what it holds are released with the subscription.
    package func subscribe(_ handler: @escaping Handler) -> Subscription {
        let listener = Listener(handler)
        content.withLock { content in
            content.listeners.removeAll(where: \.hasEnded)
            content.listeners.append(listener)
        }
        notify([listener])
        return Subscription { listener.end() }
    }

    private func notify(_ listeners: [Listener<Value>]) {
        for listener in listeners { listener.call { self.state } }
    }
}

/// One subscriber's handler, and whose turn it is to call it.
private final class Listener<Value: Sendable>: Sendable {
    private struct Turn {
        var handler: Publisher<Value>.Handler?
        /// A thread is in the handler, or about to call it.
        var isTaken = false
        /// The state was replaced since the handler was last given one.
        var isOwed = false

        /// The handler, for the one thread whose turn it now is.
        mutating func take() -> Publisher<Value>.Handler? {
            isOwed = isTaken
            guard !isTaken else { return nil }
            isTaken = handler != nil
            return handler
        }

        /// The handler once more, if its call is owed; otherwise the turn ends.
        mutating func next() -> Publisher<Value>.Handler? {
            isTaken = isOwed && handler != nil
            isOwed = false
            return isTaken ? handler : nil
        }
    }

    private let turn: Mutex<Turn>

    init(_ handler: @escaping Publisher<Value>.Handler) {
        turn = Mutex(Turn(handler: handler))
    }

    var hasEnded: Bool { turn.withLock { $0.handler == nil } }

    /// Calls the handler with the state as it is then.
    ///
    /// Two threads that called it side by side could give it the newer state before the older.
    func call(_ state: () -> BoardState<Value>) {
        var handler = turn.withLock { $0.take() }
        while let current = handler {
            current(state())
            handler = turn.withLock { $0.next() }
        }
    }

    func end() {
        // Released outside the lock: what the handler holds may do anything at its own end.
        let ended = turn.withLock { turn in
            defer { turn.handler = nil }
            return turn.handler
        }
        _ = ended
    }
}
