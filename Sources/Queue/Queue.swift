// The queue: sources store records in it, and the uploader reads them.
package import Host
package import Records
import SQLite
package import StatusBoard
import Synchronization

/// The only queue, with one thread and one writing connection.
///
/// Thread-safe: `accept` never waits for the disk. Queries read the last commit, without the
/// writer.
package final class Queue: Sendable {
    let core: QueueCore
    private let maintenance: Maintenance
    /// Set if the queue is driven by hand.
    private let hand: QueueHand?
    private let threads: Mutex<Threads>
    /// Loaded while records reach the disk; an error otherwise.
    package var storage: Publisher<StorageReport> { core.storage }

    private struct Threads: ~Copyable {
        var writer: OwnThread?
        var maintenance: OwnThread?
    }

    /// Opens the database, or creates it, and starts the writer.
    ///
    /// Quarantines a damaged database and creates a new one. If the disk fails, records wait in
    /// memory and the status board says why. Throws errors that a retry cannot fix, such as a
    /// database of a newer Waypost; nothing is started then.
    package init(settings: QueueSettings) throws {
        core = QueueCore(settings: settings)
        maintenance = try Maintenance(core: core)
        if settings.isTurnedByHand {
            let hand = QueueHand(try WriterLoop.open(core, maintenance))
            // Weak, because the loop holds the core.
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

    /// Commits pending records, stops the writer and closes the database.
    ///
    /// The queue does not accept anything afterwards. If the disk fails, returns the losses that
    /// are not in the ledger, including records in memory. The next start must `note` them.
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

    /// Returns an id for a new audio run, unique in this process.
    package func newRunID() -> Int64 { core.nextRun.wrappingAdd(1, ordering: .relaxed).oldValue }

    // Each `accept` returns false and counts the record as lost if the writer is too far behind.

    @discardableResult package func accept(_ sighting: Sighting) -> Bool {
        core.post(.sighting(sighting), sighting.stamp, .beacons, patient: true)
    }

    @discardableResult package func accept(_ record: some PlainRecord) -> Bool {
        core.post(.row(PlainRow(record)), record.stamp, type(of: record).kind.stream)
    }

    /// The maximum bytes of records put together; more might never fit in a small database.
    package var putBytes: Int { core.putBytes.load(ordering: .relaxed) }

    /// Stores records of a user's program; calls `done` once they are on disk or have failed.
    ///
    /// `done` runs on the writer's thread. Its error is `UnknownStream`, `QueueFull` or
    /// `QueueClosed`; none of the records is stored then.
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

    /// Replaces the declared user streams; pending records of removed streams are still uploaded.
    package func declare(_ streams: [DeclaredStream]) {
        _ = core.mailbox.post(.declare(streams), urgent: true)
        // Records may arrive as soon as this returns.
        _ = try? flushed()
    }

    /// Adds a plausible fix, recorded or not, to the track of an open survey.
    package func note(place fix: Fix) {
        guard core.isSurveying.load(ordering: .relaxed) else { return }
        _ = core.mailbox.post(.place(fix), patient: true)
    }

    /// Begins an audio run; then come its segments in order, then `end(run:)`.
    package func begin(_ run: AudioRun) {
        core.segments.store(0, ordering: .relaxed)
        core.sound.withLock { $0.rate = run.rate }
        _ = core.mailbox.post(.begin(run), urgent: true)
    }

    /// Stores a segment; also returns false while there is no room for audio: see `soundRefusal`.
    @discardableResult package func accept(_ segment: Segment) -> Bool {
        if core.soundIsHeld.load(ordering: .relaxed) { return false }
        var segment = segment
        segment.index = core.segments.wrappingAdd(1, ordering: .relaxed).oldValue
        // The next segment, or the end of the run, reveals and counts the gap.
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

    /// Why audio is not accepted now; nil if it is.
    package var soundRefusal: Failure? {
        guard core.soundIsHeld.load(ordering: .relaxed) else { return nil }
        let detail = storage.state.value?.detail ?? ""
        return Failure(
            "audio is not recorded: storage is nearly full; free some space"
                + (detail.isEmpty ? "" : " (\(detail))"),
            code: .storageFull
        )
    }

    /// Whether a sender that can wait (a replay) may continue; others need half of the mailbox.
    package var hasRoom: Bool { core.mailbox.count < QueueSettings.mailboxLimit / 2 }

    /// Records a loss that happened before a source could store the records.
    package func note(_ loss: Loss) {
        core.losses.withLock { $0.untaken.add(loss) }
        // The next gap begins after it.
        if loss.stream == .audio {
            core.sound.withLock { $0.stamp = [$0.stamp, loss.to].compactMap { $0 }.latest }
        }
        checkStorage()
    }

    /// Stores a text across restarts, with the next commit that happens anyway.
    package func remember(_ name: String, _ text: String) { core.memos.set(name, text) }

    /// Returns the newest text of a name; nil if there is none.
    package func remembered(_ name: String) -> String? { core.memos[name] }

    /// Losses that are not in the database yet, including those that could not be written.
    package var newLosses: [Loss] { core.losses.withLock { $0.all } }

    /// Runs `body` on the writer's thread after all accepted records, and waits for its result.
    ///
    /// Its changes are on disk on return, and undone if it throws.
    @discardableResult package func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        try core.perform(body)
    }

    /// Commits everything accepted so far; throws disk errors.
    ///
    /// Throws `WriterBusy` if the disk does not respond within `limit` (nil: waits forever).
    @discardableResult package func flushed(within limit: Duration? = nil) throws -> Self {
        try core.perform(within: limit) { _ in }
        return self
    }

    // MARK: Queries: as of the last commit

    /// The existing streams, in upload order.
    package var streams: StreamList { core.books.streams }

    /// Returns a stream's oldest, or newest, committed records that are not in a batch yet.
    ///
    /// `unreadable` names older databases whose records are skipped for now.
    package func pending(
        _ stream: Stream,
        newest: Bool = false,
        unreadable: Set<Int64> = []
    ) -> PendingRange? {
        core.books.pending(stream, newest: newest, unreadable: unreadable)
    }

    /// Returns the number of a stream's newest record; 0 if there is none.
    package func newest(_ stream: Stream) -> Int64 { core.books.newest(stream) }

    /// Returns how many records of a stream, up to a number or in older databases, are not
    /// uploaded.
    package func unsent(_ stream: Stream, through end: Int64) throws -> Int {
        try core.books.unsent(stream, through: end)
    }

    /// Returns statistics for `status`; empty until a database is open.
    ///
    /// Without `dated` they omit the oldest record's time, which is read from the database.
    package func statistics(dated: Bool = true) -> [StreamStatistics] {
        core.books.statistics(dated: dated)
    }

    /// Returns all losses so far.
    package func losses() throws -> [LossEntry] { try core.books.losses() }

    /// Returns the days of the last week with network traffic, newest first.
    package func traffic() throws -> [DayTraffic] { try core.books.traffic(today) }

    /// The best known current day.
    package var today: Int64 {
        let now = core.settings.clock.stamp()
        return (rightTime(at: now) ?? now.wall).utcDay
    }

    /// Whether the clock has been synced during this boot.
    package var clockIsSynced: Bool { core.books.memory.bootIsSynced }

    /// The newest clock map entry that corrected earlier ones.
    package var clockCorrection: Int64 { core.books.memory.clockMap.correction }

    /// Returns the true time at a point of this boot; nil until a source has vouched for one.
    ///
    /// GNSS time does not set the system clock, and a clock set by hand may be wrong.
    package func rightTime(at stamp: Stamp) -> WallTime? { core.books.rightTime(at: stamp) }

    // MARK: Surveys

    /// Begins a survey, which also records fixes.
    ///
    /// Throws `SurveyRefusal` while another one is open.
    package func startSurvey(_ name: String) throws {
        try perform { try $0.startSurvey(name) }
        core.isSurveying.store(true, ordering: .relaxed)
    }

    /// Ends the open survey; throws `SurveyRefusal` if there is none.
    package func endSurvey() throws -> OpenSurvey {
        let survey = try perform { try $0.endSurvey() }
        core.isSurveying.store(false, ordering: .relaxed)
        return survey
    }

    /// The writer's latest heartbeat.
    package var writerWord: Heartbeat.Word { core.life.word }

    /// The latest heartbeat of the maintenance thread.
    package var maintenanceWord: Heartbeat.Word { maintenance.word }

    /// Wakes the writer, so that it sends a heartbeat.
    package func askWriter() {
        core.life.asked()
        checkStorage()
    }

    /// Checks the available space and evicts records if needed.
    package func checkStorage() { _ = core.mailbox.post(.check, urgent: true) }

    /// Deletes records uploaded at least `retention` ago, while new ones are stored.
    package func purge(retention: Duration) {
        _ = core.mailbox.post(.purge(retention), urgent: true)
    }

    /// Changes the storage limits.
    package func limit(_ limits: StorageLimits) {
        core.putBytes.store(limits.put, ordering: .relaxed)
        _ = core.mailbox.post(.limit(limits), urgent: true)
    }

    /// Changes the commit interval.
    package func commit(every interval: Duration) {
        _ = core.mailbox.post(.commitInterval(interval), urgent: true)
    }

    /// Reports damage that a reader found in the database of a `generation`.
    package func reportDamage(_ message: String, generation: Int) {
        _ = core.mailbox.post(.damaged(message, generation: generation), urgent: true)
    }

    /// Counts opened databases: readers of an earlier one must be reopened.
    package var generation: Int { core.generation.load(ordering: .acquiring) }

    /// Changes before another file replaces the database: if unchanged, all reads are of one file.
    package var leavings: Int { core.leavings.load(ordering: .acquiring) }

    /// Quarantined databases whose files still exist.
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

    /// Checks for quarantined databases, and for those whose file was deleted.
    package func checkSetAside() { maintenance.salvage() }

    /// Returns a new reading connection for one thread; `database` selects a quarantined one.
    package func reader(of database: Int64 = 0) throws -> Reader {
        guard database > 0 else { return try Reader(core.settings) }
        let older = try OlderDatabase(database, core.settings)
        // Messages name its path, so a person may have deleted it.
        if !core.settings.disk.exists(older.path) {
            _ = try core.perform { try $0.giveUpIfGone(database) }
        }
        return try Reader(core.settings, older: older)
    }

    // MARK: By hand

    /// Does the writer thread's pending work: handles jobs, and commits what is due.
    ///
    /// Returns how long it could then wait; nil means forever.
    @discardableResult package func turn() -> Duration? {
        hand?.turn()
        return hand?.delay
    }

    /// Whether everything accepted so far is on disk or recorded there as lost.
    package var isAllOnDisk: Bool { hand?.isAllOnDisk ?? false }

    /// Runs one step of the maintenance thread's work; returns false if there is nothing to do.
    package func turnMaintenance() -> Bool { maintenance.step() }
}

/// A quarantined database whose file still exists.
package struct SetAside: Sendable, Equatable {
    package var path: String
    /// Its records that are not uploaded yet; nil while it is still being read.
    package var waiting: Int?
}

/// The writer's loop when it is driven by hand.
final class QueueHand: Sendable {
    // Used only by the simulator's thread, which owns the queue.
    private nonisolated(unsafe) let loop: WriterLoop

    init(_ loop: WriterLoop) { self.loop = loop }

    func turn() { loop.turn() }
    var delay: Duration? { loop.delay }
    var isAllOnDisk: Bool { loop.isAllOnDisk }
}
