// What the queue's callers, its writer and its maintenance share.
internal import Board
internal import Host
internal import SQLite
internal import Streams
internal import Synchronization

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
    /// Of a run that had so many segments.
    case end(Int64, count: Int64)
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

/// The shared part of one queue.
final class QueueCore: Sendable {
    let settings: QueueSettings
    let mailbox: Mailbox<Job>
    /// Of the writer's thread.
    let life = LifeSign()
    let storage = Publisher<StorageReport>()
    let losses = Mutex(LossTally())
    /// Losses that the end of the queue found no disk for.
    let unentered = Mutex<[Loss]>([])
    let memos = Memos()
    let soundIsHeld = Atomic(false)
    let isSurveying = Atomic(false)
    /// Counts databases: readers of an older one must be opened again.
    let generation = Atomic(0)
    /// Counts how often another file was about to take the place of the database.
    let leavings = Atomic(0)
    let books: Books
    /// Set where no thread runs the writer: does what it would do.
    let hand = Mutex<Hand?>(nil)
    /// A struct, because a bare closure is wrapped once more each time that it is looked at under the lock.
    struct Hand {
        let turn: @Sendable () -> Void
    }
    /// Names the runs of sound of this process.
    let nextRun = Atomic<Int64>(1)
    /// Segments that the run which goes on has had.
    let segments = Atomic<Int64>(0)

    init(settings: QueueSettings) {
        self.settings = settings
        mailbox = Mailbox(limit: Queue.mailboxLimit)
        books = Books(settings)
    }

    /// Called by the writer's thread before another file may take the place of the database.
    func leave() { leavings.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// Called by the writer's thread for each database it opens.
    func opened(_ database: DatabaseFile.Opened, maintenance: Maintenance) {
        let number = generation.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        memos.opened((try? database.writer.memos()) ?? [:])
        isSurveying.store(database.writer.survey?.isOpen ?? false, ordering: .relaxed)
        books.opened(database.writer)
        if !database.isChecked { maintenance.inspect(generation: number) }
        maintenance.salvage()
    }

    /// A patient record is inserted with others, at the latest when the open transaction is committed.
    func post(_ job: Job, _ stamp: Stamp, _ stream: Stream, patient: Bool = false) -> Bool {
        if mailbox.post(job, patient: patient) { return true }
        losses.withLock {
            $0.add(Loss(.overrun, stream, records: 1, from: stamp, to: stamp))
        }
        return false
    }
}

extension QueueCore {
    /// Runs `body` on the writer's thread in a transaction of its own, and waits for its result.
    func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        let question = Question<Value>()
        guard mailbox.post(.work(question.work(body)), urgent: true) else { throw QueueClosed() }
        hand.withLock { $0 }?.turn()
        return try question.answer()
    }
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

    /// Waits for the answer.
    func answer() throws -> Value {
        var answers: [Result<Value, any Error>] = []
        reply.takeAll(into: &answers, timeout: nil)
        guard let answer = answers.first else { throw QueueClosed() }
        return try answer.get()
    }
}

/// A value that two closures share.
private final class Holder<Value: Sendable>: Sendable {
    let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }
}
