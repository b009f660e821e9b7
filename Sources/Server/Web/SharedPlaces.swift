// Divides places for costly work among clients.
import Host
import ServerBase

/// A semaphore of a few places; one client has one of them at a time.
///
/// The clients that wait have their turns one after another, so that one with many requests costs
/// another client at most one turn of each.
package final class SharedPlaces: Sendable {
    private struct State {
        var free: Int
        var busy: Set<String> = []
        /// The clients that wait, each once, the next one first.
        var turns: [String] = []
        var waiting: [String: Int] = [:]

        func isTurn(of client: String) -> Bool {
            free > 0 && turns.first { !busy.contains($0) } == client
        }

        mutating func enter(_ client: String) {
            free -= 1
            let isNew = busy.insert(client).inserted
            invariant(free >= 0 && isNew, "a client has one place, of those that are free")
            turns.removeAll { $0 == client }
            waiting[client, default: 0] -= 1
            if waiting[client] == 0 { waiting[client] = nil } else { turns.append(client) }
        }
    }

    /// Requests of one client that wait; each holds a worker.
    private static let maxWaiting = 16

    private let state: Condition<State>

    package init(_ count: Int) { state = Condition(State(free: count)) }

    /// Runs `body` in a place of this client; throws an HTTPError if too many of its requests wait.
    package func use<Value>(_ client: String, _ body: () throws -> Value) throws -> Value {
        try state.withLock { try Self.queue(client, &$0) }
        state.wait(until: { $0.isTurn(of: client) }) { $0.enter(client) }
        // There may be a place for the next one, too.
        state.broadcast()
        defer {
            state.change {
                $0.busy.remove(client)
                $0.free += 1
            }
        }
        return try body()
    }

    private static func queue(_ client: String, _ state: inout State) throws {
        let count = state.waiting[client, default: 0]
        guard count < maxWaiting else {
            let reason = "\(count) batches of \(client) wait already"
            throw HTTPError(status: 429, reason: reason, retryAfter: 5)
        }
        state.waiting[client] = count + 1
        if count == 0 { state.turns.append(client) }
    }
}
