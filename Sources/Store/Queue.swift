// The queue: where every source puts its records and the uploader finds them.
package import Board
package import Host
internal import Synchronization

/// The one queue, on one thread with one writing connection.
///
/// `accept` may be called from any thread and never waits for the disk.
package final class Queue: Sendable {
    /// Records that may be under way to the writer before more are refused (and counted).
    package static let mailboxLimit = 20_000

    private let mailbox: Mailbox<Job>
    private let nextRun: Atomic<Int64>
    private let refused = Mutex([Stream: Int]())
    private let lane: Mutex<LaneSlot>
    private let settings: QueueSettings
    /// Loaded while records reach the disk; an error when they do not.
    package let storage: Publisher<String>

    private struct LaneSlot: ~Copyable {
        var lane: Lane?
    }

    /// Opens the database, made if it is not there, and starts the writer.
    ///
    /// Throws what SQLite or the file system said: nothing has been started then.
    package init(settings: QueueSettings) throws {
        let mailbox = Mailbox<Job>(limit: Self.mailboxLimit)
        let storage = Publisher<String>()
        let opened = Mailbox<Result<Int64, any Error>>(limit: 1)
        var lane: Lane? = try Lane("queue") {
            do {
                let writer = try Writer(
                    path: settings.path,
                    bootID: settings.bootID,
                    clock: settings.clock,
                    appVersion: settings.appVersion
                )
                let runs = try writer.connection.integer("SELECT max(id) FROM runs") ?? 0
                _ = opened.post(.success(runs + 1))
                WriterLoop(writer: writer, mailbox: mailbox, storage: storage, settings: settings)
                    .run()
            } catch {
                _ = opened.post(.failure(error))
            }
        }
        var answers: [Result<Int64, any Error>] = []
        opened.takeAll(into: &answers, timeout: nil)
        guard let first = try answers.first?.get() else {
            throw SQLiteError(code: 21, message: "the writer gave no answer", statement: "")
        }
        self.mailbox = mailbox
        self.storage = storage
        self.settings = settings
        nextRun = Atomic(first)
        self.lane = Mutex(LaneSlot(lane: lane.take()))
        storage.loaded(settings.path)
    }

    /// Commits what there is, ends the writer and closes the database.
    ///
    /// The queue takes no more after it.
    package func close() {
        guard let lane = lane.withLock({ $0.lane.take() }) else { return }
        _ = mailbox.post(.stop, urgent: true)
        lane.join()
    }

    /// An id for a new run of sound, unique in this database.
    package func newRunID() -> Int64 {
        nextRun.wrappingAdd(1, ordering: .relaxed).oldValue
    }

    // Each `accept` returns false, and counts the record as refused, when the writer is too far behind.

    @discardableResult package func accept(_ sighting: Sighting) -> Bool {
        post(.sighting(sighting), .beacons, patient: true)
    }

    @discardableResult package func accept(_ fix: Fix) -> Bool { post(.fix(fix), .location) }

    @discardableResult package func accept(_ event: Event) -> Bool { post(.event(event), .events) }

    /// Sound comes as `begin(run)`, its segments in order, `end(run:)`.
    package func begin(_ run: AudioRun) { _ = mailbox.post(.begin(run), urgent: true) }

    @discardableResult package func accept(_ segment: Segment) -> Bool {
        post(.segment(segment), .audio)
    }

    package func end(run: Int64) { _ = mailbox.post(.end(run), urgent: true) }

    /// A patient record is inserted with others, at the latest when the open transaction is committed.
    private func post(_ job: Job, _ stream: Stream, patient: Bool = false) -> Bool {
        if mailbox.post(job, patient: patient) { return true }
        refused.withLock { $0[stream, default: 0] += 1 }
        return false
    }

    /// Records that `accept` refused since the start.
    package var refusedRecords: [Stream: Int] { refused.withLock { $0 } }

    /// Runs `body` on the writer's thread, after everything accepted before, and waits for its result.
    ///
    /// What it changes is on the disk when this returns.
    package func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        let reply = Mailbox<Result<Value, any Error>>(limit: 1)
        let job = Job.work { writer in
            _ = reply.post(
                Result {
                    guard let writer else { throw QueueClosed() }
                    return try body(writer)
                }
            )
        }
        guard lane.withLock({ $0.lane != nil }) else { throw QueueClosed() }
        _ = mailbox.post(job, urgent: true)
        var answers: [Result<Value, any Error>] = []
        reply.takeAll(into: &answers, timeout: nil)
        guard let answer = answers.first else { throw QueueClosed() }
        return try answer.get()
    }

    /// A read-only connection of its own, for one thread.
    package func reader() throws -> Reader { try Reader(path: settings.path) }
}

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

/// The queue was closed while something still wanted it.
package struct QueueClosed: Error, CustomStringConvertible {
    package var description: String { "the queue is closed" }
}

/// What the writer is asked to do.
enum Job: Sendable {
    case sighting(Sighting)
    case fix(Fix)
    case event(Event)
    case begin(AudioRun)
    case segment(Segment)
    case end(Int64)
    /// Called with nil when the queue closes before its turn.
    case work(@Sendable (Writer?) -> Void)
    case stop
}
