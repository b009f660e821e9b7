// What the queue's callers, its writer and its caretaker share.
internal import Board
package import Host
internal import Synchronization

/// What a queue needs to know.
package struct QueueSettings: Sendable {
    /// The database file.
    package var path: String
    /// Names this boot (`/proc/sys/kernel/random/boot_id`).
    package var bootID: String
    package var commitInterval: Duration
    package var clock: any HostClock
    /// Sent with each batch.
    package var appVersion: String
    package var limits = StorageLimits()
    /// Free bytes of the file system that a folder is on.
    package var freeSpace: @Sendable (String) -> Int64 = { FileSpace.free($0) }

    package init(
        path: String,
        bootID: String,
        commitInterval: Duration = .seconds(1),
        clock: any HostClock = SystemClock(),
        appVersion: String
    ) {
        self.path = path
        self.bootID = bootID
        self.commitInterval = commitInterval
        self.clock = clock
        self.appVersion = appVersion
    }
}

/// What the writer is asked to do.
enum Job: Sendable {
    case sighting(Sighting)
    case fix(Fix)
    case event(Event)
    /// Where the gateway is: kept while a survey goes on.
    case place(Fix)
    case begin(AudioRun)
    case segment(Segment)
    case end(Int64)
    case work(Work)
    /// Looks after the storage now.
    case check
    case limit(StorageLimits)
    /// The database of an epoch was found damaged.
    case damaged(String, epoch: Int)
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
    let mailbox = Mailbox<Job>(limit: Queue.mailboxLimit)
    let storage = Publisher<StorageReport>()
    let losses = Mutex(LossTally())
    let soundIsHeld = Atomic(false)
    let isSurveying = Atomic(false)
    let epoch = Atomic(0)
    private let nextRun = Atomic<Int64>(1)
    private let isClosed = Atomic(false)

    init(settings: QueueSettings) {
        self.settings = settings
    }

    /// Called by the writer's thread for each database it opens.
    func opened(_ database: DatabaseFile.Opened, caretaker: Caretaker) {
        // Never backwards: a capture that goes on may still use a number of the database before.
        let next = nextRun.load(ordering: .relaxed)
        nextRun.store(max(next, database.nextRun), ordering: .relaxed)
        isSurveying.store(database.writer.survey?.isOpen ?? false, ordering: .relaxed)
        if !database.isChecked { caretaker.inspect(epoch: epoch.load(ordering: .acquiring)) }
        for path in DatabaseFile.setAside(beside: settings.path) { caretaker.salvage(path) }
    }

    func newRunID() -> Int64 { nextRun.wrappingAdd(1, ordering: .relaxed).oldValue }

    func close() {
        isClosed.store(true, ordering: .releasing)
        _ = mailbox.post(.stop, urgent: true)
    }

    /// A patient record is inserted with others, at the latest when the open transaction is committed.
    func post(_ job: Job, _ stamp: Stamp, _ stream: Stream, patient: Bool = false) -> Bool {
        if mailbox.post(job, patient: patient) { return true }
        losses.withLock {
            $0.add(Loss(.overrun, stream, records: 1, from: stamp, to: stamp))
        }
        return false
    }

    func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        let reply = Mailbox<Result<Value, any Error>>(limit: 1)
        let result = Mutex<Result<Value, any Error>>(.failure(QueueClosed()))
        guard !isClosed.load(ordering: .acquiring) else { throw QueueClosed() }
        let work = Work(
            run: { writer in
                let outcome = Result<Value, any Error> {
                    guard let writer else { throw QueueClosed() }
                    return try body(writer)
                }
                result.withLock { $0 = outcome }
                if case .failure(let error) = outcome { return error }
                return nil
            },
            finish: { error in
                _ = reply.post(error.map { .failure($0) } ?? result.withLock { $0 })
            }
        )
        _ = mailbox.post(.work(work), urgent: true)
        var answers: [Result<Value, any Error>] = []
        reply.takeAll(into: &answers, timeout: nil)
        guard let answer = answers.first else { throw QueueClosed() }
        return try answer.get()
    }
}
