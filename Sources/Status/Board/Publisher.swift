// The status board: the only way that state leaves a component.
package import Host
import Synchronization

/// The state of a value on the status board.
///
/// Every reader handles all four cases.
package enum BoardState<Value: Sendable>: Sendable {
    case unknown
    /// Being started or restarted, with the previous value if there was one.
    case loading(previous: Value?)
    case loaded(Value)
    /// Not working, with the previous value if there was one.
    case error(Failure, previous: Value?)

    /// The newest value, current or previous.
    package var value: Value? {
        switch self {
        case .unknown: nil
        case .loading(let previous), .error(_, let previous): previous
        case .loaded(let value): value
        }
    }
}

/// Keeps a subscription alive; after its deinit, no call of its handler begins.
package final class Subscription: Sendable {
    private let end: @Sendable () -> Void

    fileprivate init(_ end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    deinit {
        end()
    }
}

/// Holds the latest state of one component and notifies its subscribers of each change.
///
/// A subscriber always ends with the newest state. Changes during its handler, from another thread
/// or from the handler itself, are merged into one later call with the newest state. Thread-safe.
package final class Publisher<Value: Sendable>: Sendable {
    package typealias Handler = @Sendable (BoardState<Value>) -> Void

    private struct Content {
        var state: BoardState<Value> = .unknown
        var listeners: [Listener<Value>] = []

        /// Replaces the state; returns the subscribers to notify after the lock is released.
        mutating func replace(with state: BoardState<Value>) -> [Listener<Value>] {
            self.state = state
            listeners.removeAll(where: \.hasEnded)
            return listeners
        }
    }

    private let content = Mutex(Content())

    package init() {}

    package var state: BoardState<Value> { content.withLock { $0.state } }

    /// Replaces the state and calls each subscriber, on this thread or on one already calling it.
    ///
    /// Handlers run without a lock and must not block.
    package func publish(_ state: BoardState<Value>) {
        notify(content.withLock { $0.replace(with: state) })
    }

    package func loaded(_ value: Value) { publish(.loaded(value)) }

    /// Publishes `loading` with the previous value.
    package func loading() {
        notify(content.withLock { $0.replace(with: .loading(previous: $0.state.value)) })
    }

    /// Publishes `error` with the previous value.
    package func failed(_ failure: Failure) {
        notify(content.withLock { $0.replace(with: .error(failure, previous: $0.state.value)) })
    }

    /// Calls `handler` with the current state now, and with each later one while the result lives.
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

/// One subscriber's handler, called by one thread at a time.
private final class Listener<Value: Sendable>: Sendable {
    private struct Turn {
        var handler: Publisher<Value>.Handler?
        /// A thread is calling the handler or is about to.
        var isTaken = false
        /// The state has changed since the handler was last called.
        var isOwed = false

        /// Returns the handler to the one thread that may call it; nil if another is calling it.
        mutating func take() -> Publisher<Value>.Handler? {
            isOwed = isTaken
            guard !isTaken else { return nil }
            isTaken = handler != nil
            return handler
        }

        /// Returns the handler again if the state has changed; otherwise ends the call.
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

    /// Calls the handler with the current state.
    ///
    /// One thread at a time: two could deliver the newer state before the older.
    func call(_ state: () -> BoardState<Value>) {
        var handler = turn.withLock { $0.take() }
        while let current = handler {
            current(state())
            handler = turn.withLock { $0.next() }
        }
    }

    func end() {
        // Released outside the lock: the deinit of what the handler holds may do anything.
        let ended = turn.withLock { turn in
            defer { turn.handler = nil }
            return turn.handler
        }
        _ = ended
    }
}
