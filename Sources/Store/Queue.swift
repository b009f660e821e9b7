// The queue: where every source puts its records and the uploader finds them.
package import Board
internal import Host
internal import Synchronization

/// The one queue, on one thread with one writing connection.
///
/// `accept` may be called from any thread and never waits for the disk.
package final class Queue: Sendable {
    /// Records that may be under way to the writer before more are refused (and counted).
    package static let mailboxLimit = 20_000

    private let core: QueueCore
    private let caretaker: Caretaker
    private let lanes: Mutex<Lanes>
    /// Loaded while records reach the disk; an error when they do not.
    package var storage: Publisher<StorageReport> { core.storage }

    private struct Lanes: ~Copyable {
        var writer: Lane?
        var caretaker: Lane?
    }

    /// Opens the database, made if it is not there, and starts the writer.
    ///
    /// A damaged database is set aside and a new one begun. A disk that refuses is no reason to give up:
    /// records wait in memory and the board says why. Throws for what time will not mend, such as a
    /// database of a newer Waypost; nothing has been started then.
    package init(settings: QueueSettings) throws {
        let core = QueueCore(settings: settings)
        let caretaker = try Caretaker(core: core)
        let opened = Mailbox<(any Error)?>(limit: 1)
        var writer: Lane? = try Lane("queue") {
            do {
                let database = try DatabaseFile.open(settings)
                core.opened(database, caretaker: caretaker)
                core.storage.loaded(StorageReport(path: settings.path))
                _ = opened.post(nil)
                WriterLoop(writer: database.writer, core: core, caretaker: caretaker).run()
            } catch let error as SQLiteError where error.isDisk {
                var loop = WriterLoop(writer: nil, core: core, caretaker: caretaker)
                loop.refused(error)
                _ = opened.post(nil)
                loop.run()
            } catch {
                _ = opened.post(error)
            }
        }
        var answers: [(any Error)?] = []
        opened.takeAll(into: &answers, timeout: nil)
        if let error = answers.first ?? QueueClosed() {
            writer.take()?.join()
            throw error
        }
        self.core = core
        self.caretaker = caretaker
        var care: Lane? = try Lane("caretaker") { caretaker.run() }
        lanes = Mutex(Lanes(writer: writer.take(), caretaker: care.take()))
    }

    /// Commits what there is, ends the writer and closes the database.
    ///
    /// The queue takes no more after it.
    package func close() {
        guard let care = lanes.withLock({ $0.caretaker.take() }) else { return }
        caretaker.stop()
        care.join()
        guard let writer = lanes.withLock({ $0.writer.take() }) else { return }
        core.close()
        writer.join()
    }

    /// An id for a new run of sound, unique in this database.
    package func newRunID() -> Int64 { core.newRunID() }

    // Each `accept` returns false, and counts the record as lost, when the writer is too far behind.

    @discardableResult package func accept(_ sighting: Sighting) -> Bool {
        core.post(.sighting(sighting), sighting.stamp, .beacons, patient: true)
    }

    @discardableResult package func accept(_ fix: Fix) -> Bool {
        core.post(.fix(fix), fix.stamp, .location)
    }

    @discardableResult package func accept(_ event: Event) -> Bool {
        core.post(.event(event), event.stamp, .events)
    }

    /// Sound comes as `begin(run)`, its segments in order, `end(run:)`.
    package func begin(_ run: AudioRun) { _ = core.mailbox.post(.begin(run), urgent: true) }

    /// Also false while there is no room for sound: see `soundRefusal`.
    @discardableResult package func accept(_ segment: Segment) -> Bool {
        if core.soundIsHeld.load(ordering: .relaxed) { return false }
        return core.post(.segment(segment), segment.start, .audio)
    }

    package func end(run: Int64) { _ = core.mailbox.post(.end(run), urgent: true) }

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
    package var hasRoom: Bool { core.mailbox.count < Self.mailboxLimit / 2 }

    /// Enters what a source lost before it could be accepted.
    package func note(_ loss: Loss) {
        core.losses.withLock { $0.add(loss) }
        checkStorage()
    }

    /// Losses that are not in the database yet.
    package var newLosses: [Loss] { core.losses.withLock { $0.all } }

    /// Runs `body` on the writer's thread, after everything accepted before, and waits for its result.
    ///
    /// What it changes is on the disk when this returns; nothing of it when it throws.
    package func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Writer) throws -> Value
    ) throws -> Value {
        try core.perform(body)
    }

    /// Looks at the room there is, and deletes what has to go.
    package func checkStorage() { _ = core.mailbox.post(.check, urgent: true) }

    /// Other limits from now on.
    package func limit(_ limits: StorageLimits) {
        _ = core.mailbox.post(.limit(limits), urgent: true)
    }

    /// A reader found the database damaged that had this `epoch` when it was opened.
    package func reportDamage(_ words: String, epoch: Int) {
        _ = core.mailbox.post(.damaged(words, epoch: epoch), urgent: true)
    }

    /// Counts databases: readers of an older one must be opened again.
    package var epoch: Int { core.epoch.load(ordering: .acquiring) }

    /// Databases that were set aside as damaged and are still there.
    package var setAside: [String] { DatabaseFile.setAside(beside: core.settings.path) }

    /// A read-only connection of its own, for one thread.
    package func reader() throws -> Reader { try Reader(path: core.settings.path) }
}

/// The queue is closed, or has no database for now, while something wanted it.
package struct QueueClosed: Error, CustomStringConvertible {
    package var description: String { "the queue has no database (any more)" }
}
