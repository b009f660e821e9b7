// The queue: where every source puts its records and the uploader finds them.
package import Host
package import Records
import SQLite
package import StatusBoard
import Synchronization

/// The one queue, on one thread with one writing connection.
///
/// `accept` may be called from any thread and never waits for the disk. Questions are answered from what was
/// committed last, without the writer.
package final class Queue: Sendable {
    let core: QueueCore
    private let maintenance: Maintenance
    /// Set where the queue is turned by hand.
    private let hand: QueueHand?
    private let threads: Mutex<Threads>
    /// Loaded while records reach the disk; an error when they do not.
    package var storage: Publisher<StorageReport> { core.storage }

    private struct Threads: ~Copyable {
        var writer: OwnThread?
        var maintenance: OwnThread?
    }

    /// Opens the database, made if it is not there, and starts the writer.
    ///
    /// A damaged database is set aside and a new one begun. A disk that refuses is no reason to give up:
    /// records wait in memory and the board says why. Throws for what time will not mend, such as a
    /// database of a newer Waypost; nothing has been started then.
    package init(settings: QueueSettings) throws {
        core = QueueCore(settings: settings)
        maintenance = try Maintenance(core: core)
        if settings.isTurnedByHand {
            let hand = QueueHand(try WriterLoop.open(core, maintenance))
            // Weak, for what it turns has the core.
            core.hand.withLock { $0 = QueueCore.Hand { [weak hand] in hand?.turn() } }
            self.hand = hand
            threads = Mutex(Threads())
            return
        }
        hand = nil
        var writer: OwnThread? = try Self.start(core, maintenance)
        let maintenance = maintenance
        var care: OwnThread? = try OwnThread("maintenance") { maintenance.run() }
        threads = Mutex(Threads(writer: writer.take(), maintenance: care.take()))
    }

    /// Starts the writer's thread; returns once the database is open.
    private static func start(_ core: QueueCore, _ maintenance: Maintenance) throws -> OwnThread {
        let opened = Mailbox<(any Error)?>(limit: 1)
        let writer = try OwnThread("queue") {
            do {
                let loop = try WriterLoop.open(core, maintenance)
                _ = opened.post(nil)
                loop.run()
            } catch {
                _ = opened.post(error)
            }
        }
        var answers: [(any Error)?] = []
        opened.takeAll(into: &answers, timeout: nil)
        guard let error = answers.first ?? QueueClosed() else { return writer }
        writer.join()
        throw error
    }

    /// Commits what there is, ends the writer and closes the database.
    ///
    /// The queue takes no more after it. Returns what was lost and is not in the ledger, as the disk refuses:
    /// records that waited in memory for it, too. The next start is to `note` it.
    @discardableResult package func close() -> [Loss] {
        if let hand {
            _ = core.mailbox.post(.stop, urgent: true)
            hand.turn()
        } else if let care = threads.withLock({ $0.maintenance.take() }) {
            maintenance.stop()
            care.join()
            guard let writer = threads.withLock({ $0.writer.take() }) else { return [] }
            _ = core.mailbox.post(.stop, urgent: true)
            writer.join()
        }
        return core.unentered.withLock { $0 }
    }

    /// A name for a new run of sound, unique in this process.
    package func newRunID() -> Int64 { core.nextRun.wrappingAdd(1, ordering: .relaxed).oldValue }

    // Each `accept` returns false, and counts the record as lost, when the writer is too far behind.

    @discardableResult package func accept(_ sighting: Sighting) -> Bool {
        core.post(.sighting(sighting), sighting.stamp, .beacons, patient: true)
    }

    @discardableResult package func accept(_ record: some PlainRecord) -> Bool {
        core.post(.row(PlainRow(record)), record.stamp, type(of: record).kind.stream)
    }

    /// The bytes that records put together should have at most: more may find no room in a small database, ever.
    package var putBytes: Int { core.putBytes.load(ordering: .relaxed) }

    /// Records of a program of the user's; `done` is called once they are on the disk, or are not to be.
    ///
    /// `done` runs on the writer's thread. Its error is UnknownStream for one that is not declared, QueueFull, or
    /// QueueClosed; nothing of them was taken then.
    package func put(
        _ records: [UserRecord],
        done: @escaping @Sendable ((any Error)?) -> Void
    ) {
        let streams = core.books.streams
        var rows: [PlainRow] = []
        for record in records {
            guard let kind = streams[name: record.stream], kind.isOfUser else {
                return done(UnknownStream(name: record.stream))
            }
            rows.append(PlainRow(record, kind.stream))
        }
        if !core.mailbox.post(.put(rows, done)) { done(QueueFull()) }
    }

    /// Streams of the user from now on; one that is not among them any more is uploaded to its end.
    package func declare(_ streams: [DeclaredStream]) {
        _ = core.mailbox.post(.declare(streams), urgent: true)
        // Records may come as soon as this returns.
        _ = try? flushed()
    }

    /// A good fix, whether it is a record or not: a survey wants to know where each sighting was.
    package func note(place fix: Fix) {
        guard core.isSurveying.load(ordering: .relaxed) else { return }
        _ = core.mailbox.post(.place(fix), patient: true)
    }

    /// Sound comes as `begin(run)`, its segments in order, `end(run:)`.
    package func begin(_ run: AudioRun) {
        core.segments.store(0, ordering: .relaxed)
        core.sound.withLock { $0.rate = run.rate }
        _ = core.mailbox.post(.begin(run), urgent: true)
    }

    /// Also false while there is no room for sound: see `soundRefusal`.
    @discardableResult package func accept(_ segment: Segment) -> Bool {
        if core.soundIsHeld.load(ordering: .relaxed) { return false }
        var segment = segment
        segment.index = core.segments.wrappingAdd(1, ordering: .relaxed).oldValue
        // A hole is counted when the next segment, or the end, shows it.
        guard core.mailbox.post(.segment(segment)) else { return false }
        core.sound.withLock { sound in
            let length = Int64(segment.frames) * 1_000_000 / Int64(max(1, sound.rate))
            sound.stamp = segment.start.advanced(by: .microseconds(length))
        }
        return true
    }

    package func end(run: Int64) {
        let count = core.segments.load(ordering: .relaxed)
        let end = core.settings.clock.stamp()
        _ = core.mailbox.post(.end(run, count: count, at: end), urgent: true)
    }

    /// Why no sound is taken now; nil while it is.
    package var soundRefusal: Failure? {
        guard core.soundIsHeld.load(ordering: .relaxed) else { return nil }
        let detail = storage.state.value?.detail ?? ""
        return Failure(
            "no sound is recorded, storage is nearly full; free some space"
                + (detail.isEmpty ? "" : " (\(detail))"),
            code: .storageFull
        )
    }

    /// Whether one who can wait (a replay) may go on; the other half of the room is for those who cannot.
    package var hasRoom: Bool { core.mailbox.count < QueueSettings.mailboxLimit / 2 }

    /// Enters what a source lost before it could be accepted.
    package func note(_ loss: Loss) {
        core.losses.withLock { $0.untaken.add(loss) }
        // A gap that comes begins behind it.
        if loss.stream == .audio {
            core.sound.withLock { $0.stamp = [$0.stamp, loss.to].compactMap { $0 }.latest }
        }
        checkStorage()
    }

    /// Keeps a text for after a restart; it is on the disk with the next commit that there is a reason for.
    package func remember(_ name: String, _ text: String) { core.memos.set(name, text) }

    /// The newest text of that name; nil when there never was one.
    package func remembered(_ name: String) -> String? { core.memos[name] }

    /// Losses that are not in the database yet, those among them that the disk refuses.
    package var newLosses: [Loss] { core.losses.withLock { $0.all } }

    /// Runs `body` on the writer's thread, after everything accepted before, and waits for its result.
    ///
    /// What it changes is on the disk when this returns; nothing of it when it throws.
    @discardableResult package func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        try core.perform(body)
    }

    /// Commits everything that was accepted before; throws what the disk says to that, or WriterBusy when it says
    /// nothing within `limit` (nil: it is waited for).
    @discardableResult package func flushed(within limit: Duration? = nil) throws -> Self {
        try core.perform(within: limit) { _ in }
        return self
    }

    // MARK: Questions: as of the last commit

    /// The streams there are, in the order of upload.
    package var streams: StreamList { core.books.streams }

    /// The oldest records of a stream that no batch has yet, or the newest ones; all of them are committed.
    ///
    /// `unreadable`: older databases whose records are left where they are for now.
    package func pending(
        _ stream: Stream,
        newest: Bool = false,
        unreadable: Set<Int64> = []
    ) -> PendingRange? {
        core.books.pending(stream, newest: newest, unreadable: unreadable)
    }

    /// The number of the newest record of a stream; 0 before the first.
    package func newest(_ stream: Stream) -> Int64 { core.books.newest(stream) }

    /// How many records of a stream up to a number, and of older databases, no server has yet.
    package func unsent(_ stream: Stream, through end: Int64) throws -> Int {
        try core.books.unsent(stream, through: end)
    }

    /// Figures for `status`; none before there is a database.
    ///
    /// Without `dated` they leave out when the oldest record is of, for which the database is read.
    package func statistics(dated: Bool = true) -> [StreamStatistics] {
        core.books.statistics(dated: dated)
    }

    /// Everything lost so far.
    package func losses() throws -> [LossEntry] { try core.books.losses() }

    /// The days of the last week that have any bytes on the wire, newest first.
    package func traffic() throws -> [DayTraffic] { try core.books.traffic(today) }

    /// The day that it is, as far as is known.
    package var today: Int64 {
        let now = core.settings.clock.stamp()
        return (rightTime(at: now) ?? now.wall).utcDay
    }

    /// Whether this boot's clock has been synced since it started.
    package var clockIsSynced: Bool { core.books.memory.bootIsSynced }

    /// The newest entry of the clock map that put older ones right.
    package var clockCorrection: Int64 { core.books.memory.clockMap.correction }

    /// The right time at a moment of this boot; nil as long as nobody has vouched for one.
    ///
    /// A receiver's time sets no clock, and whoever set the clock by hand may have been wrong.
    package func rightTime(at stamp: Stamp) -> WallTime? { core.books.rightTime(at: stamp) }

    // MARK: Surveys

    /// Begins a survey; from here on places are wanted, too.
    ///
    /// Throws SurveyRefusal while another one goes on.
    package func startSurvey(_ name: String) throws {
        try perform { try $0.startSurvey(name) }
        core.isSurveying.store(true, ordering: .relaxed)
    }

    /// Ends the survey that goes on; throws SurveyRefusal when there is none.
    package func endSurvey() throws -> OpenSurvey {
        let survey = try perform { try $0.endSurvey() }
        core.isSurveying.store(false, ordering: .relaxed)
        return survey
    }

    /// The writer's last word.
    package var writerWord: Heartbeat.Word { core.life.word }

    /// The last word of the thread that salvages and checks.
    package var maintenanceWord: Heartbeat.Word { maintenance.word }

    /// Wakes the writer, which has to say something then.
    package func askWriter() {
        core.life.asked()
        checkStorage()
    }

    /// Looks at the room there is, and deletes what has to go.
    package func checkStorage() { _ = core.mailbox.post(.check, urgent: true) }

    /// Deletes what was uploaded at least so long ago, while records go on.
    package func purge(retention: Duration) {
        _ = core.mailbox.post(.purge(retention), urgent: true)
    }

    /// Other limits from now on.
    package func limit(_ limits: StorageLimits) {
        core.putBytes.store(limits.put, ordering: .relaxed)
        _ = core.mailbox.post(.limit(limits), urgent: true)
    }

    /// Commits so often from now on.
    package func commit(every interval: Duration) {
        _ = core.mailbox.post(.commitInterval(interval), urgent: true)
    }

    /// A reader found the database damaged that had this `generation` when it was opened.
    package func reportDamage(_ message: String, generation: Int) {
        _ = core.mailbox.post(.damaged(message, generation: generation), urgent: true)
    }

    /// Counts databases: readers of an older one must be opened again.
    package var generation: Int { core.generation.load(ordering: .acquiring) }

    /// Changes before another file takes the place of the database: what is read while it stays is of one file.
    package var leavings: Int { core.leavings.load(ordering: .acquiring) }

    /// Databases that were set aside as damaged and are still there.
    package var setAside: [SetAside] {
        let memory = core.books.memory
        return DatabaseFile.setAside(core.settings).map { path in
            guard let id = memory.files[DatabaseFile.name(path)] else {
                return SetAside(path: path, waiting: nil)
            }
            let isKnown = memory.older.contains { $0.key.database == id }
            let isRead = !isKnown || memory.draining.contains(id)
            return SetAside(path: path, waiting: isRead ? Int(memory.left(in: id)) : nil)
        }
    }

    /// Looks for databases that were set aside, or whose file was taken away.
    package func checkSetAside() { maintenance.salvage() }

    /// A reading connection of its own, for one thread; `database`: one that was set aside.
    package func reader(of database: Int64 = 0) throws -> Reader {
        guard database > 0 else { return try Reader(core.settings) }
        let older = try OlderDatabase(database, core.settings)
        // People are told where it is, and may delete it.
        if !core.settings.disk.exists(older.path) {
            _ = try core.perform { try $0.giveUpIfGone(database) }
        }
        return try Reader(core.settings, older: older)
    }

    // MARK: By hand

    /// Does what the writer's thread would do now: takes what was posted, commits what is due.
    ///
    /// Returns how long it could then wait; nil for ever.
    @discardableResult package func turn() -> Duration? {
        hand?.turn()
        return hand?.delay
    }

    /// Whether all that was accepted so far is on the disk, or entered as lost there.
    package var isAllOnDisk: Bool { hand?.isAllOnDisk ?? false }

    /// Does one step of what the maintenance thread would do; false when there is nothing to do.
    package func turnMaintenance() -> Bool { maintenance.step() }
}

/// A database that was set aside as damaged, and whose file is still there.
package struct SetAside: Sendable, Equatable {
    package var path: String
    /// Records in it that no server has yet; nil while it is still being read.
    package var waiting: Int?
}

/// The writer's loop where no thread runs it.
final class QueueHand: Sendable {
    // Turned by one thread, that of the simulator, which owns the queue.
    private nonisolated(unsafe) let loop: WriterLoop

    init(_ loop: WriterLoop) { self.loop = loop }

    func turn() { loop.turn() }
    var delay: Duration? { loop.delay }
    var isAllOnDisk: Bool { loop.isAllOnDisk }
}
