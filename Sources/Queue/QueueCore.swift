// What the queue's callers, its writer and its maintenance share.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

/// The shared part of one queue.
final class QueueCore: Sendable {
    let settings: QueueSettings
    let mailbox: Mailbox<Job>
    /// Of the writer's thread.
    let life = Heartbeat()
    let storage = Publisher<StorageReport>()
    let losses = Mutex(NewLosses())
    /// Tells this start of the program from others.
    private let started: BootInstant
    let inFlight = InFlight()
    /// Losses that the end of the queue found no disk for.
    let unentered = Mutex<[Loss]>([])
    let memos = Memos()
    let soundIsHeld = Atomic(false)
    /// Bytes that records which are put together should have at most.
    let putBytes: Atomic<Int>
    let isSurveying = Atomic(false)
    /// Counts databases: readers of an older one must be opened again.
    let generation = Atomic(0)
    /// Counts how often another file was about to take the place of the database.
    let leavings = Atomic(0)
    let books: QueueCounters
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
    /// Where the sound of this process ends, whether it is on the disk or not.
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

    /// Called by the writer's thread before another file may take the place of the database.
    func leave() { leavings.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// Called by the writer's thread for each database it opens; returns its generation.
    func opened(_ writer: Writer) -> Int {
        // First: whoever sees that there is a database asks what it remembers.
        memos.opened((try? writer.memos()) ?? [:])
        let number = generation.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        isSurveying.store(writer.survey?.isOpen ?? false, ordering: .relaxed)
        books.opened(writer)
        return number
    }

    /// A patient record is inserted with others, at the latest when the open transaction is committed.
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
    /// Runs `body` on the writer's thread in a transaction of its own, and waits for its result.
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
