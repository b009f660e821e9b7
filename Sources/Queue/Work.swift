// Work for the writer's thread, and how a caller waits for its result.
import Host
import Synchronization

/// Work for the writer's thread, in a separate transaction.
protocol Work: Sendable {
    /// Does the work; its changes are rolled back if it throws.
    func run(_ writer: Writer) throws
    /// Called once its changes are on disk, or with the error.
    func finish(_ error: (any Error)?)
}

/// Work with a result that a caller waits for.
final class Question<Value: Sendable>: Work {
    private let body: @Sendable (Writer) throws -> Value
    private let value = Mutex<Value?>(nil)
    private let reply = Mailbox<(any Error)?>(limit: 1)

    init(_ body: @escaping @Sendable (Writer) throws -> Value) { self.body = body }

    func run(_ writer: Writer) throws {
        let result = try body(writer)
        value.withLock { $0 = result }
    }

    func finish(_ error: (any Error)?) { _ = reply.post(error) }

    /// Waits for the result; throws `WriterBusyError` if there is none within `limit` (nil: forever).
    func answer(within limit: Duration?) throws -> Value {
        var answers: [(any Error)?] = []
        reply.takeAll(into: &answers, timeout: limit)
        guard let error = answers.first else { throw WriterBusyError() }
        guard let value = value.withLock({ $0 }), error == nil else {
            throw error ?? QueueClosedError()
        }
        return value
    }
}
