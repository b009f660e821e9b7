// What the writer's loop does when somebody deleted, renamed or replaced the database under it.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

extension WriterLoop {
    /// Copying gigabytes on a slow card takes so long at most.
    private static let copyLimit = Duration.seconds(300)

    /// Replaces the open database if its path does not name it any more; false when nothing had to be done.
    ///
    /// Commits still succeed then, into a file that ends with the process. It is copied from the open connection to
    /// where a damaged database is set aside, and its records are uploaded from there.
    ///
    /// `ifAnotherIsThere`: where there is none, nobody can read it, and its folder may be away for a moment.
    @discardableResult func replaceMovedFile(ifAnotherIsThere: Bool = false) -> Bool {
        guard let writer, let opened = files.database,
            let there = settings.disk.identity(settings.path), there != opened,
            there != .none || !ifAnotherIsThere
        else { return false }
        core.leave()
        try? writer.rollback()
        writer.connection.keepJournal()
        do {
            guard settings.disk.exists(settings.folder) else {
                throw SystemError("stat", on: settings.folder, code: 2)
            }
            try setStrangerAside(isThere: there != .none)
            if !copyAside(writer) { noteAllLost(writer) }
            self.writer = nil
            files = (nil, nil)
            begin(try openDatabase())
            if retryAt == nil { insertBacklog() }
        } catch {
            giveUpFile()
            core.storage.failed(
                Failure(
                    "\(settings.path) was deleted or replaced while waypost ran: \(error); "
                        + "records wait in memory; put the folder back or restart waypost"
                )
            )
        }
        return true
    }

    /// Moves the file that took the database's place aside, as if it were damaged; it may be an older backup.
    private func setStrangerAside(isThere: Bool) throws {
        let (disk, journal) = (settings.disk, settings.path + "-wal")
        // Ours would be taken for the journal of the other file, and its pages be written into it.
        if !isThere || disk.identity(journal) == files.journal { disk.remove(journal) }
        guard isThere else { return _ = disk.remove(settings.path + "-shm") }
        try DatabaseFile.moveAside(settings) { _ in }
    }

    /// Copies the open database to where a damaged one would be set aside; false when that fails.
    ///
    /// Where the whole cannot be copied, for want of room or for a bad page, what was uploaded is left out.
    private func copyAside(_ writer: Writer) -> Bool {
        if copyOnce(writer) { return true }
        deleteUploaded(writer)
        return copyOnce(writer)
    }

    /// Deletes as much as it can of what was uploaded.
    private func deleteUploaded(_ writer: Writer) {
        let bytes = settings.reserveBytes
        var reserve = Reserve(database: settings.path, on: settings.disk, bytes: bytes)
        _ = reserve.release()
        do {
            while try writer.evictUploaded() {
                core.life.enters("SQLite", for: Self.copyLimit)
                try writer.commit()
            }
        } catch {
            try? writer.rollback()
        }
        core.books.committed(writer)
    }

    private func copyOnce(_ writer: Writer) -> Bool {
        let path = DatabaseFile.nameAside(settings)
        do {
            try noteAside(path)
            core.life.enters("VACUUM INTO", for: Self.copyLimit)
            try writer.connection.copy(to: path)
            try settings.disk.writeAgain(path)
            return true
        } catch {
            settings.disk.remove(path)
            settings.disk.remove(path + CommitMark.suffix)
            return false
        }
    }

    /// What only the deleted file had is lost: it goes into the ledger of the next database.
    private func noteAllLost(_ writer: Writer) {
        let now = settings.clock.stamp()
        let losses = writer.streams.streams.map { stream in
            let counters = writer.committed[Partition(stream)]
            let records = counters.waiting + counters.ready + counters.quarantined
            return Loss(.corrupt, stream, records: records, from: now, to: now)
        }
        core.losses.withLock { $0.hold(losses.filter { $0.records > 0 }) }
    }
}
