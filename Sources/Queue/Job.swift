// Jobs for the writer, and how a caller waits for one.
import Host
import Records
import Synchronization

/// A job for the writer.
enum Job: Sendable {
    case sighting(Sighting)
    /// A record of a plain stream.
    case row(PlainRow)
    /// Records whose sender waits until they are on disk.
    case put([PlainRow], @Sendable ((any Error)?) -> Void)
    /// A fix; stored while a survey is open.
    case place(Fix)
    case begin(AudioRun)
    case segment(Segment)
    /// Ends a run that had `count` segments.
    case end(Int64, count: Int64, at: Stamp)
    case work(Work)
    /// Checks the storage now.
    case check
    /// Deletes records uploaded at least that long ago.
    case purge(Duration)
    case limit(StorageLimits)
    /// Changes the commit interval.
    case commitInterval(Duration)
    case declare([DeclaredStream])
    /// The database of a generation was found damaged.
    case damaged(String, generation: Int)
    case stop
}

/// Work for the writer's thread, in a separate transaction.
struct Work: Sendable {
    /// Does the work; returns the error, or nil if it can be committed.
    ///
    /// Called with nil if there is no database.
    var run: @Sendable (Writer?) -> (any Error)?
    /// Called once its changes are on disk, or with the error.
    var finish: @Sendable ((any Error)?) -> Void
}

/// Runs a closure on the writer and lets the caller wait for its result.
struct Question<Value: Sendable>: Sendable {
    private let reply = Mailbox<Result<Value, any Error>>(limit: 1)

    func work(_ body: @escaping @Sendable (Writer) throws -> Value) -> Work {
        let result = Holder<Result<Value, any Error>>(.failure(QueueClosed()))
        return Work(
            run: { writer in
                let outcome = Result<Value, any Error> {
                    guard let writer else { throw QueueClosed() }
                    return try body(writer)
                }
                result.value.withLock { $0 = outcome }
                if case .failure(let error) = outcome { return error }
                return nil
            },
            finish: { [reply] error in
                _ = reply.post(error.map { .failure($0) } ?? result.value.withLock { $0 })
            }
        )
    }

    /// Waits for the result; throws `WriterBusy` if there is none within `limit` (nil: forever).
    func answer(within limit: Duration?) throws -> Value {
        var answers: [Result<Value, any Error>] = []
        reply.takeAll(into: &answers, timeout: limit)
        guard let answer = answers.first else { throw WriterBusy() }
        return try answer.get()
    }
}

/// A value shared by two closures.
private final class Holder<Value: Sendable>: Sendable {
    let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }
}
