// Handles disk errors, damaged databases and the shutdown of the writer's loop.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

extension WriterLoop {
    /// Returns the backoff: 1, 2, 4, then 8 s.
    ///
    /// It spares a failing card, yet notices a recovered one soon.
    static func pause(after failures: Int) -> Duration {
        .seconds(1 << min(max(0, failures - 1), 3))
    }

    func succeeded() { (failures, fulls, replacements, isHeld) = (0, 0, 0, false) }

    /// Handles a failed write: rolls back and schedules a retry of all since the last commit.
    func refused(_ error: any Error) {
        failures += 1
        try? writer?.rollback()
        let sqlite = error as? SQLiteError
        isHeld = sqlite?.isBusy ?? false
        // If the disk damages each new database too, wait for it.
        if sqlite?.isDamage == true, replacements < 3 {
            replacements += 1
            return replace("\(error)")
        }
        let isFull = sqlite?.isFull ?? false
        var delay = Self.pause(after: failures)
        if isFull {
            fulls += 1
            delay = .seconds(1)
            if let writer, makeRoom(writer) { delay = .zero }
            queue.isFull.store(quota.isFull, ordering: .relaxed)
            queue.soundIsHeld.store(quota.soundIsHeld, ordering: .relaxed)
        }
        retryAt = settings.clock.now() + delay
        guard !isFull || failures > 3 || delay > .zero else { return }
        let step = isFull ? "free some space" : "look at the disk"
        let why =
            databaseHolder(of: settings.path, after: error)
            .map { "\($0); records wait in memory" } ?? "\(error); records wait in memory: \(step)"
        queue.storage.failed(
            Failure("\(settings.path): \(why)", code: isFull ? .storageFull : nil)
        )
    }

    private func makeRoom(_ writer: Writer) -> Bool {
        do {
            defer { queue.counters.committed(writer) }
            return try quota.makeRoom(writer, isRepeated: fulls > 3)
        } catch {
            // Do not leave half an eviction open: SQLite may have ended the transaction silently.
            try? writer.rollback()
            return false
        }
    }

    func openDatabase() throws -> DatabaseFile.Opened {
        try DatabaseFile.refuseHeld(settings)
        return try DatabaseFile.open(
            settings,
            userStreams,
            numbers: queue.counters.content.userNumbers
        ) {
            try recordAside($0)
        }
    }

    /// Writes the commit mark next to a database that is about to be quarantined.
    ///
    /// Records in memory go into the next database, so the quarantined one counts up to its last
    /// commit. Throws disk errors: no database is quarantined without its mark.
    func recordAside(_ path: String) throws {
        guard queue.generation > 0 else { return }
        let (disk, mark) = (settings.disk, Array(CommitMark(queue.counters.memory).text.utf8))
        // The marked one is moved already: the mark does not describe this one, never open.
        if let marked, disk.exists(marked) { return }
        marked = path
        do {
            try disk.write(path + CommitMark.suffix, mark)
        } catch {
            let bytes = settings.reserveBytes
            var reserve = Reserve(database: settings.path, on: disk, bytes: bytes)
            guard reserve.release() else { throw error }
            try disk.write(path + CommitMark.suffix, mark)
        }
    }

    func reopen() {
        if replaceMovedFile() { return }
        queue.leave()
        do {
            // Close the old connection last: while one is open, the WAL index stays at the last
            // commit, so recovery does not bring back a transaction whose fsync failed.
            let database = try openDatabase()
            writer?.connection.keepJournal()
            begin(database)
            insertBacklog()
        } catch {
            refused(error)
        }
    }

    func begin(_ database: DatabaseFile.Opened) {
        writer = database.writer
        marked = nil
        files.database = settings.disk.identity(settings.path)
        files.journal = settings.disk.identity(settings.path + "-wal")
        let generation = queue.opened(database.writer)
        if hasEffort { effort.moved() }
        if !database.isChecked { queue.maintenance.inspect(generation: generation) }
        queue.maintenance.salvage()
        retryAt = nil
        attempt { try continueEffort($0) }
        attempt { try quota.begin($0) }
    }

    /// Restarts the audio run of held segments if the database does not have it.
    ///
    /// It may be new, or may have rolled back the start of the run.
    func resumeRun() {
        guard let open = backlog.openRun, writer?.chunker.token != open.run.id else { return }
        attempt { try $0.begin(open.run, from: open.next) }
    }

    /// Quarantines the damaged database and continues with a new one.
    func replace(_ message: String) {
        // The damage may be that of a file that replaced the database.
        if replaceMovedFile() { return }
        queue.leave()
        try? writer?.rollback()
        do {
            writer?.connection.keepJournal()
            if settings.disk.exists(settings.path) {
                try DatabaseFile.moveAside(settings) { try recordAside($0) }
            }
            writer = nil
            begin(try openDatabase())
            if retryAt == nil { insertBacklog() }
        } catch {
            // A failing disk may have faked the damage: the next retry checks again in `reopen`.
            giveUpFile()
            queue.storage.failed(Failure("\(settings.path): \(error); \(message)"))
        }
    }

    /// Schedules a reopen after the open file could not be replaced.
    func giveUpFile() {
        failures = max(failures + 1, 3)
        isHeld = false
        retryAt = settings.clock.now() + Self.pause(after: failures)
    }

    /// Ends the loop; waiting and later callers get an error instead of blocking forever.
    func end() {
        queue.counters.closed()
        writer = nil
        queue.mailbox.close(into: &jobs)
        let unheld = jobs.compactMap(\.record).filter { !backlog.hold($0) }
        for loss in unheld.compactMap({ $0.loss() }) { queue.inFlightCount.settled(loss) }
        queue.inFlightCount.settled(backlog.tally)
        queue.unrecorded.withLock { losses in
            losses.add(unheld.flatMap { $0.losses() } + backlog.losses)
            _ = losses.take()
        }
        for job in jobs {
            switch job {
            case .work(let work): work.finish(QueueClosedError())
            case .record(.put(_, _, let done)): done(QueueClosedError())
            case .record, .command: break
            }
        }
        for done in waiting { done(QueueClosedError()) }
        waiting.removeAll()
        jobs.removeAll()
    }
}
