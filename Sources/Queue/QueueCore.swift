// The state that the queue's callers, its writer and its maintenance share.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

/// The shared state of one queue.
final class QueueCore: Sendable {
    let settings: QueueSettings
    let mailbox: Mailbox<Job>
    /// The heartbeat of the writer's thread.
    let life = Heartbeat()
    let storage = Publisher<StorageReport>()
    let losses = Mutex(NewLosses())
    /// Distinguishes this process from earlier ones.
    private let started: BootInstant
    let inFlight = InFlight()
    /// Losses that could not be written at shutdown.
    let unentered = Mutex<[Loss]>([])
    let memos = Memos()
    let soundIsHeld = Atomic(false)
    /// The maximum bytes of records put together.
    let putBytes: Atomic<Int>
    let isSurveying = Atomic(false)
    /// Counts opened databases: readers of an earlier one must be reopened.
    let generation = Atomic(0)
    /// Counts how often another file was about to replace the database.
    let leavings = Atomic(0)
    let books: QueueCounters
    /// Runs the writer by hand; nil if a thread runs it.
    let hand = Mutex<Hand?>(nil)
    /// A struct, because a bare closure is wrapped again on each access under the lock.
    struct Hand {
        let turn: @Sendable () -> Void
    }
    /// The next id of an audio run in this process.
    let nextRun = Atomic<Int64>(1)
    /// The number of segments so far in the current run.
    let segments = Atomic<Int64>(0)
    /// Where this process's audio ends, whether it is on disk or not.
    let sound = Mutex(EndOfSound())

    struct EndOfSound {
        var rate = 0
        var stamp: Stamp?
    }

    init(settings: QueueSettings) {
        self.settings = settings
        started = settings.clock.now()
        putBytes = Atomic(settings.limits.put)
        mailbox = Mailbox(limit: QueueSettings.mailboxLimit)
        books = QueueCounters(settings)
    }

    func turn(_ number: Int64) -> LossTransactionID {
        LossTransactionID(bootID: settings.bootID, started: started, number: number)
    }

    /// Called by the writer's thread before another file may replace the database.
    func leave() { leavings.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// Called by the writer's thread for each database it opens; returns its generation.
    func opened(_ writer: Writer) -> Int {
        // Load memos first: callers read them as soon as they see the new database.
        memos.opened((try? writer.memos()) ?? [:])
        let number = generation.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        isSurveying.store(writer.survey?.isOpen ?? false, ordering: .relaxed)
        books.opened(writer)
        return number
    }

    /// Posts a record; a patient one may wait for others, at most until the next commit.
    func post(_ job: Job, _ stamp: Stamp, _ stream: Stream, patient: Bool = false) -> Bool {
        if mailbox.post(job, patient: patient) {
            inFlight.accepted(stream)
            return true
        }
        let overrun = Loss(.overrun, stream, records: 1, from: stamp, to: stamp)
        losses.withLock {
            $0.untaken.add(overrun)
            if case .row(let row) = job, let told = row.loss { $0.untaken.add(told) }
        }
        return false
    }
}

extension QueueCore {
    /// Runs `body` on the writer's thread in a separate transaction, and waits for its result.
    func perform<Value: Sendable>(
        within limit: Duration? = nil,
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        let question = Question<Value>()
        guard mailbox.post(.work(question.work(body)), urgent: true) else { throw QueueClosed() }
        hand.withLock { $0 }?.turn()
        return try question.answer(within: limit)
    }
}
