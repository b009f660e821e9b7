// What the writer's loop does when the disk refuses or the database is damaged, and at its end.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

extension WriterLoop {
    /// 1, 2, 4, 8 s: a failing card must not be hammered, and one that is back is wanted soon.
    static func pause(after failures: Int) -> Duration {
        .seconds(1 << min(max(0, failures - 1), 3))
    }

    /// False when it failed: by then the disk is waited for, or another database is open.
    @discardableResult func attempt(_ body: (Writer) throws -> Void) -> Bool {
        guard let writer else {
            refused(QueueClosed())
            return false
        }
        do {
            try body(writer)
            return true
        } catch {
            refused(error)
            return false
        }
    }

    func succeeded() { (failures, fulls, replacements, isHeld) = (0, 0, 0, false) }

    /// The disk, or the database, did not take it: everything since the last commit is to be written again.
    func refused(_ error: any Error) {
        failures += 1
        try? writer?.rollback()
        let sqlite = error as? SQLiteError
        isHeld = sqlite?.isBusy ?? false
        // A disk that damages each new database, too, is waited for.
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
            core.soundIsHeld.store(quota.soundIsHeld, ordering: .relaxed)
        }
        retryAt = settings.clock.now() + delay
        guard !isFull || failures > 3 || delay > .zero else { return }
        let step = isFull ? "free some space" : "look at the disk"
        let why =
            databaseHolder(of: settings.path, after: error)
            .map { "\($0); records wait in memory" } ?? "\(error); records wait in memory: \(step)"
        core.storage.failed(
            Failure("\(settings.path): \(why)", code: isFull ? .storageFull : nil)
        )
    }

    private func makeRoom(_ writer: Writer) -> Bool {
        do {
            defer { core.books.committed(writer) }
            return try quota.makeRoom(writer, isRepeated: fulls > 3)
        } catch {
            // Half an eviction must not stay open: SQLite may have ended it without our knowing.
            try? writer.rollback()
            return false
        }
    }

    func openDatabase() throws -> DatabaseFile.Opened {
        try DatabaseFile.refuseHeld(settings)
        return try DatabaseFile.open(settings, userStreams, numbers: core.books.userNumbers) {
            try noteAside($0)
        }
    }

    /// What is held in memory goes into the next database: the one that is set aside counts up to its last commit.
    ///
    /// Throws what the disk says: no database is set aside before its mark is there.
    func noteAside(_ path: String) throws {
        guard core.generation.load(ordering: .acquiring) > 0 else { return }
        let (disk, mark) = (settings.disk, Array(CommitMark(core.books.memory).text.utf8))
        // That one is away by now: what is set aside next was never open, and has nothing of what the mark says.
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
        core.leave()
        do {
            // The old connection goes last: as long as one is there, the journal's index is as of the last
            // commit, and a transaction that failed as it was synced is not found in the journal again.
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
        let generation = core.opened(database.writer)
        if !database.isChecked { maintenance.inspect(generation: generation) }
        maintenance.salvage()
        retryAt = nil
        attempt { try quota.begin($0) }
    }

    /// Sound that is held may be of a run before it, which a new database, or one that took nothing yet, does not have.
    func resumeRun() {
        guard let open = backlog.openRun, writer?.chunker.token != open.run.id else { return }
        attempt { try $0.begin(open.run, from: open.next) }
    }

    /// Sets the damaged database aside and goes on with a new one.
    func replace(_ message: String) {
        // The damage may be that of a file which was put in the database's place.
        if replaceMovedFile() { return }
        core.leave()
        try? writer?.rollback()
        do {
            writer?.connection.keepJournal()
            if settings.disk.exists(settings.path) {
                try DatabaseFile.moveAside(settings) { try noteAside($0) }
            }
            writer = nil
            begin(try openDatabase())
            if retryAt == nil { insertBacklog() }
        } catch {
            // A disk that refuses this may have made up the damage: the next try looks again, by `reopen`.
            giveUpFile()
            core.storage.failed(Failure("\(settings.path): \(error); \(message)"))
        }
    }

    /// Replacing the open file failed: the next try, later, opens the database again.
    func giveUpFile() {
        failures = max(failures + 1, 3)
        isHeld = false
        retryAt = settings.clock.now() + Self.pause(after: failures)
    }

    /// Callers that wait, or come later, must not wait for ever.
    func end() {
        core.books.closed()
        writer = nil
        core.mailbox.close(into: &jobs)
        let unheld = jobs.filter { !backlog.hold($0) }
        for loss in unheld.compactMap(\.loss) { core.inFlight.settled(loss) }
        core.inFlight.settled(backlog.tally)
        let losses = core.losses.withLock { losses in
            losses.hold(unheld.flatMap(\.losses) + backlog.losses)
            return losses.take()
        }
        core.unentered.withLock { $0 = losses }
        for job in jobs {
            switch job {
            case .work(let work): work.finish(QueueClosed())
            case .put(_, let done): done(QueueClosed())
            default: break
            }
        }
        for done in waiting { done(QueueClosed()) }
        waiting.removeAll()
        jobs.removeAll()
    }
}
