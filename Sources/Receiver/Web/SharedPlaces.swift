// Divides places for costly work among clients.
import Foundation

/// A semaphore of a few places; one client has one of them at a time.
///
/// The clients that wait have their turns one after another, so that one with many requests costs
/// another client at most one turn of each.
final class SharedPlaces: @unchecked Sendable {
    // Unchecked because everything mutable is used under `condition`.
    /// Requests of one client that wait; each holds a worker.
    private static let mostWaiting = 16

    private let condition = NSCondition()
    private var free: Int
    private var busy: Set<String> = []
    /// The clients that wait, each once, the next one first.
    private var turns: [String] = []
    private var waiting: [String: Int] = [:]

    init(_ count: Int) { free = count }

    /// Runs `body` in a place of this client; throws an HTTPRefusal if too many of its requests wait.
    func use<Value>(_ client: String, _ body: () throws -> Value) throws -> Value {
        try condition.withLock { try take(client) }
        defer {
            condition.withLock {
                busy.remove(client)
                free += 1
                condition.broadcast()
            }
        }
        return try body()
    }

    private func take(_ client: String) throws {
        let count = waiting[client, default: 0]
        guard count < Self.mostWaiting else {
            let reason = "\(count) batches of \(client) wait already"
            throw HTTPRefusal(status: 429, reason: reason, retryAfter: 5)
        }
        waiting[client] = count + 1
        if count == 0 { turns.append(client) }
        while free == 0 || turns.first(where: { !busy.contains($0) }) != client { condition.wait() }
        free -= 1
        busy.insert(client)
        turns.removeAll { $0 == client }
        waiting[client, default: 0] -= 1
        if waiting[client] == 0 { waiting[client] = nil } else { turns.append(client) }
        // There may be a place for the next one, too.
        condition.broadcast()
    }
}
