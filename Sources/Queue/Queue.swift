// The queue: sources store records in it, and the uploader reads them.
package import Host
package import Records
import SQLite
package import StatusBoard
import Synchronization

/// The only queue, with one thread and one writing connection.
///
/// Thread-safe: `accept` never waits for the disk. Queries read the last commit, without the
/// writer. The writer's loop and the maintenance use its internal state; the loop does not own it.
package final class Queue: Sendable {
    let settings: QueueSettings
    package var bootID: String { settings.bootID }
    let mailbox = Mailbox<Job>(limit: QueueSettings.mailboxLimit)
    let maintenance: Maintenance
    /// Loaded while records reach the disk; an error otherwise.
    package let storage = Publisher<StorageReport>()
    /// The heartbeat of the writer's thread.
    let life = Heartbeat()
    let counters: QueueCounters
    let unrecorded = Mutex(NewLosses())
    let inFlightCount = InFlight()
    let memos = Memos()
    let isSurveying = Atomic(false)
    let soundIsHeld = Atomic(false)
    let isFull = Atomic(false)
    /// Where this process's audio ends, whether it is on disk or not.
    let sound = Mutex(EndOfAudio())
    /// Distinguishes this process from earlier ones.
    private let started: BootInstant
    private let putLimit: Atomic<Int>
    private let databases = Atomic(0)
    private let departures = Atomic(0)
    /// The next id of an audio run in this process.
    private let nextRun = Atomic<Int64>(1)
    /// The number of segments so far in the current run.
    private let segments = Atomic<Int64>(0)
    private let threads = Mutex(Threads())
    private let handBox = Mutex<QueueHand?>(nil)
    /// Set if the queue is driven by hand.
    var hand: QueueHand? { handBox.withLock { $0 } }

    struct EndOfAudio {
        var rate = 0
        var stamp: Stamp?
    }

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
        self.settings = settings
        started = settings.clock.now()
        putLimit = Atomic(settings.limits.put)
        counters = QueueCounters(settings)
        maintenance = try Maintenance()
        if settings.isTurnedByHand {
            let hand = QueueHand(try WriterLoop.open(self))
            handBox.withLock { $0 = hand }
            return
        }
        var writer: OwnThread? = try startWriter()
        var care: OwnThread? = try OwnThread("maintenance") { [self] in maintenance.run(self) }
        threads.withLock { $0 = Threads(writer: writer.take(), maintenance: care.take()) }
    }

    /// Starts the writer's thread; returns once the database is open.
    private func startWriter() throws -> OwnThread {
        let opened = Mailbox<(any Error)?>(limit: 1)
        let writer = try OwnThread("queue") { [self] in
            do {
                let loop = try WriterLoop.open(self)
                _ = opened.post(nil)
                loop.run()
            } catch {
                _ = opened.post(error)
            }
        }
        var answers: [(any Error)?] = []
        opened.takeAll(into: &answers, timeout: nil)
        guard let error = answers.first ?? QueueClosedError() else { return writer }
        writer.join()
        throw error
    }

    /// Commits pending records, stops the writer and closes the database.
    ///
    /// The queue does not accept anything afterwards. If the disk fails, returns the losses that
    /// are not in the ledger, including records in memory. The next start must `record` them.
    @discardableResult package func close() -> [Loss] {
        let stop: @Sendable (WriterLoop) -> Void = { $0.isRunning = false }
        if let hand {
            command(stop)
            hand.turn()
        } else if let care = threads.withLock({ $0.maintenance.take() }) {
            maintenance.stop()
            care.join()
            guard let writer = threads.withLock({ $0.writer.take() }) else { return [] }
            command(stop)
            writer.join()
        }
        return newLosses
    }

    /// Returns an id for a new audio run, unique in this process.
    package func newRunID() -> Int64 { nextRun.wrappingAdd(1, ordering: .relaxed).oldValue }

    // Each `accept` returns false and counts the record as lost if the writer is too far behind.

    @discardableResult package func accept(_ sighting: Sighting) -> Bool {
        post(.sighting(sighting), .beacons, patient: true)
    }

    @discardableResult package func accept(_ record: some PlainRecord) -> Bool {
        post(.row(PlainRow(record)), type(of: record).kind.stream)
    }

    /// A patient record may wait for others, at most until the next commit.
    private func post(_ record: QueuedRecord, _ stream: Stream, patient: Bool = false) -> Bool {
        if isFull.load(ordering: .relaxed), !Stream.ofTheProgram.contains(stream) {
            unrecorded.withLock { $0.add(record.losses(.gap)) }
            return false
        }
        if mailbox.post(.record(record), patient: patient) {
            inFlightCount.accepted(stream)
            return true
        }
        unrecorded.withLock { $0.add(record.losses(.overrun)) }
        return false
    }

    /// Runs `body` on the writer's thread, between two records.
    func command(_ body: @escaping @Sendable (WriterLoop) -> Void) {
        _ = mailbox.post(.command(body), urgent: true)
    }

    /// The maximum bytes of records put together; more might never fit in a small database.
    package var putBytes: Int { putLimit.load(ordering: .relaxed) }

    /// Replaces the declared user streams; pending records of removed streams are still uploaded.
    package func declare(_ streams: [DeclaredStream]) {
        command { $0.declare(streams) }
        // Records may arrive as soon as this returns.
        _ = try? flushed()
    }

    /// Adds a plausible fix, recorded or not, to the track of an open survey.
    package func record(place fix: Fix) {
        guard isSurveying.load(ordering: .relaxed) else { return }
        _ = mailbox.post(.record(.place(fix)), patient: true)
    }

    /// Begins an audio run; then come its segments in order, then `end(run:)`.
    package func begin(_ run: AudioRun) {
        segments.store(0, ordering: .relaxed)
        sound.withLock { $0.rate = run.rate }
        _ = mailbox.post(.record(.begin(run)), urgent: true)
    }

    /// Stores a segment; also returns false while there is no room for audio: see `soundRefusal`.
    @discardableResult package func accept(_ segment: Segment) -> Bool {
        if soundIsHeld.load(ordering: .relaxed) { return false }
        var segment = segment
        segment.index = segments.wrappingAdd(1, ordering: .relaxed).oldValue
        // The next segment, or the end of the run, reveals and counts the gap.
        guard mailbox.post(.record(.segment(segment))) else { return false }
        sound.withLock { sound in
            let length = Int64(segment.frames) * 1_000_000 / Int64(max(1, sound.rate))
            sound.stamp = segment.start.advanced(by: .microseconds(length))
        }
        return true
    }

    package func end(run: Int64) {
        let count = segments.load(ordering: .relaxed)
        let end = QueuedRecord.end(run, count: count, at: settings.clock.stamp())
        _ = mailbox.post(.record(end), urgent: true)
    }

    /// Why only the program's own records are accepted now; nil if all are.
    package var fullRefusal: Failure? {
        guard isFull.load(ordering: .relaxed) else { return nil }
        return Failure(
            "nothing is recorded: the disk is full, by other files than the database; free some space",
            code: .storageFull
        )
    }

    /// Why audio is not accepted now; nil if it is.
    package var soundRefusal: Failure? {
        guard soundIsHeld.load(ordering: .relaxed) else { return nil }
        let detail = storage.state.value?.detail ?? ""
        return Failure(
            "audio is not recorded: storage is nearly full; free some space"
                + (detail.isEmpty ? "" : " (\(detail))"),
            code: .storageFull
        )
    }

    /// Whether a sender that can wait (a replay) may continue; others need half of the mailbox.
    package var hasRoom: Bool { mailbox.count < QueueSettings.mailboxLimit / 2 }

    /// Records a loss that happened before a source could store the records.
    package func record(_ loss: Loss) {
        unrecorded.withLock { $0.add([loss]) }
        // The next gap begins after it.
        if loss.stream == .audio {
            sound.withLock { $0.stamp = [$0.stamp, loss.to].compactMap { $0 }.latest }
        }
        checkStorage()
    }

    /// Stores a text across restarts, with the next commit that happens anyway.
    package func remember(_ name: String, _ text: String) { memos.set(name, text) }

    /// Returns the newest text of a name; nil if there is none.
    package func remembered(_ name: String) -> String? { memos[name] }

    /// Losses that are not in the database yet, including those that could not be written.
    package var newLosses: [Loss] { unrecorded.withLock { $0.all } }

    /// Runs `body` on the writer's thread after all accepted records, and waits for its result.
    ///
    /// Its changes are on disk on return, and undone if it throws.
    @discardableResult package func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        try perform(within: nil, body)
    }

    /// Throws `WriterBusyError` if there is no result within `limit` (nil: waits forever).
    private func perform<Value: Sendable>(
        within limit: Duration?,
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        let question = Question(body)
        guard mailbox.post(.work(question), urgent: true) else { throw QueueClosedError() }
        hand?.turn()
        return try question.answer(within: limit)
    }

    /// Commits everything accepted so far; throws disk errors.
    ///
    /// Throws `WriterBusyError` if the disk does not respond within `limit` (nil: waits forever).
    @discardableResult package func flushed(within limit: Duration? = nil) throws -> Self {
        try perform(within: limit) { _ in }
        return self
    }

    // MARK: Surveys

    /// Begins a survey, which also records fixes.
    ///
    /// Throws `SurveyError` while another one is open.
    package func startSurvey(_ name: String) throws {
        try perform { try $0.startSurvey(name) }
        isSurveying.store(true, ordering: .relaxed)
    }

    /// Ends the open survey; throws `SurveyError` if there is none.
    package func endSurvey() throws -> OpenSurvey {
        let survey = try perform { try $0.endSurvey() }
        isSurveying.store(false, ordering: .relaxed)
        return survey
    }

    /// The writer's latest heartbeat.
    package var writerWord: Heartbeat.Word { life.word }

    /// The latest heartbeat of the maintenance thread.
    package var maintenanceWord: Heartbeat.Word { maintenance.word }

    /// Wakes the writer, so that it sends a heartbeat.
    package func askWriter() {
        life.asked()
        checkStorage()
    }

    /// Checks the available space and evicts records if needed.
    package func checkStorage() { command { $0.check() } }

    /// Deletes records uploaded at least `retention` ago, while new ones are stored.
    package func purge(retention: Duration) {
        command { $0.purging = retention }
    }

    /// Changes what of the sound is uploaded.
    package func upload(_ sound: SoundUpload) {
        settings.sound.replace(with: sound)
        command { loop in loop.attempt { try $0.soundChanged() } }
    }

    /// Changes the storage limits.
    package func limit(_ limits: StorageLimits) {
        putLimit.store(limits.put, ordering: .relaxed)
        command { $0.limit(limits) }
    }

    /// Changes the commit interval.
    package func commit(every interval: Duration) {
        command { $0.commitInterval = interval }
    }

    /// Reports damage that a reader found in the database of a `generation`.
    package func reportDamage(_ message: String, generation: Int) {
        command { $0.damaged(message, generation: generation) }
    }

    /// Counts opened databases: readers of an earlier one must be reopened.
    package var generation: Int { databases.load(ordering: .acquiring) }

    /// Changes before another file replaces the database: if unchanged, all reads are of one file.
    package var leavings: Int { departures.load(ordering: .acquiring) }

    // MARK: The writer's side

    /// Called by the writer's thread before another file may replace the database.
    func leave() { departures.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// Called by the writer's thread for each database it opens; returns its generation.
    func opened(_ writer: Writer) -> Int {
        // Load memos first: callers read them as soon as they see the new database.
        memos.opened((try? writer.memos()) ?? [:])
        let number = databases.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        isSurveying.store(writer.survey?.isOpen ?? false, ordering: .relaxed)
        counters.closed()
        counters.committed(writer)
        return number
    }

    func lossTransaction(_ number: Int64) -> LossTransactionID {
        LossTransactionID(bootID: settings.bootID, started: started, number: number)
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
    package func turnMaintenance() -> Bool { maintenance.step(self) }
}

/// The writer's loop when it is driven by hand.
final class QueueHand: Sendable {
    // Used only by the simulator's thread, which owns the queue.
    nonisolated(unsafe) let loop: WriterLoop

    init(_ loop: WriterLoop) { self.loop = loop }

    func turn() { loop.turn() }
    var delay: Duration? { loop.delay }
    var isAllOnDisk: Bool { loop.isAllOnDisk }
}
