// What the writer is asked to do, and how a caller waits for it.
import Host
import Records
import Synchronization

/// What the writer is asked to do.
enum Job: Sendable {
    case sighting(Sighting)
    /// A record of a plain stream.
    case row(PlainRow)
    /// Records whose giver waits until they are on the disk.
    case put([PlainRow], @Sendable ((any Error)?) -> Void)
    /// Where the gateway is: kept while a survey goes on.
    case place(Fix)
    case begin(AudioRun)
    case segment(Segment)
    /// Of a run that had so many segments, and when.
    case end(Int64, count: Int64, at: Stamp)
    case work(Work)
    /// Looks after the storage now.
    case check
    /// Deletes what was uploaded that long ago.
    case purge(Duration)
    case limit(StorageLimits)
    /// Commits so often from now on.
    case commitInterval(Duration)
    case declare([DeclaredStream])
    /// The database of a generation was found damaged.
    case damaged(String, generation: Int)
    case stop
}

/// Something to be done on the writer's thread, in a transaction of its own.
struct Work: Sendable {
    /// Returns why it failed; nil when it is done and can be committed.
    ///
    /// Called with nil when there is no database.
    var run: @Sendable (Writer?) -> (any Error)?
    /// Called once its changes are on the disk, or with the reason why they are not.
    var finish: @Sendable ((any Error)?) -> Void
}

/// How callers have something done by the writer and wait for it.
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

    /// Waits for the answer; throws WriterBusy when there is none within `limit` (nil: for ever).
    func answer(within limit: Duration?) throws -> Value {
        var answers: [Result<Value, any Error>] = []
        reply.takeAll(into: &answers, timeout: limit)
        guard let answer = answers.first else { throw WriterBusy() }
        return try answer.get()
    }
}

/// A value that two closures share.
private final class Holder<Value: Sendable>: Sendable {
    let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }
}
