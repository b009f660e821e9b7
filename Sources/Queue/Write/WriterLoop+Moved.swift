// Handles a database file that was deleted, renamed or replaced while it was open.
import Host
import Records
import SQLite
import StatusBoard
import Synchronization

extension WriterLoop {
    /// The maximum time to copy gigabytes on a slow card.
    private static let copyLimit = Duration.seconds(300)

    /// Replaces the open database if its path now names another file; returns false if it does not.
    ///
    /// Commits still succeed then, but into a file that vanishes with the process. So the open
    /// database is copied to a quarantine path, and its records are uploaded from there.
    ///
    /// `ifAnotherIsThere` ignores a missing file: nobody reads it, and its folder may be away
    /// briefly.
    @discardableResult func replaceMovedFile(ifAnotherIsThere: Bool = false) -> Bool {
        guard let writer, let opened = files.database,
            let there = settings.disk.identity(settings.path), there != opened,
            there != .none || !ifAnotherIsThere
        else { return false }
        queue.leave()
        try? writer.rollback()
        writer.connection.keepJournal()
        do {
            guard settings.disk.exists(settings.folder) else {
                throw SystemError("stat", on: settings.folder, code: 2)
            }
            try setStrangerAside(isThere: there != .none)
            if !copyAside(writer) { recordAllLost(writer) }
            self.writer = nil
            files = (nil, nil)
            begin(try openDatabase())
            if retryAt == nil { insertBacklog() }
        } catch {
            giveUpFile()
            queue.storage.failed(
                Failure(
                    "\(settings.path) was deleted or replaced while waypost ran: \(error); "
                        + "records wait in memory; put the folder back or restart waypost"
                )
            )
        }
        return true
    }

    /// Quarantines the file that replaced the database; it may be an older backup.
    private func setStrangerAside(isThere: Bool) throws {
        let (disk, journal) = (settings.disk, settings.path + "-wal")
        // SQLite would apply our WAL to the other file and write our pages into it.
        if !isThere || disk.identity(journal) == files.journal { disk.remove(journal) }
        guard isThere else { return _ = disk.remove(settings.path + "-shm") }
        try DatabaseFile.moveAside(settings) { _ in }
    }

    /// Copies the open database to a quarantine path; returns false on failure.
    ///
    /// If the whole does not fit or has a bad page, retries without the uploaded records.
    private func copyAside(_ writer: Writer) -> Bool {
        if copyOnce(writer) { return true }
        deleteUploaded(writer)
        return copyOnce(writer)
    }

    /// Deletes as many uploaded records as possible.
    private func deleteUploaded(_ writer: Writer) {
        let bytes = settings.reserveBytes
        var reserve = Reserve(database: settings.path, on: settings.disk, bytes: bytes)
        _ = reserve.release()
        do {
            while try writer.evictUploaded() {
                queue.life.enters("SQLite", for: Self.copyLimit)
                try writer.commit()
            }
        } catch {
            try? writer.rollback()
        }
        queue.counters.committed(writer)
    }

    private func copyOnce(_ writer: Writer) -> Bool {
        let path = DatabaseFile.nameAside(settings)
        do {
            try recordAside(path)
            queue.life.enters("VACUUM INTO", for: Self.copyLimit)
            try writer.connection.copy(to: path)
            try settings.disk.writeAgain(path)
            return true
        } catch {
            settings.disk.remove(path)
            settings.disk.remove(path + CommitMark.suffix)
            return false
        }
    }

    /// Adds everything that only the deleted file had to the next database's ledger as lost.
    private func recordAllLost(_ writer: Writer) {
        let now = settings.clock.stamp()
        let losses = writer.streams.streams.map { stream in
            let counters = writer.committed[Partition(stream)]
            let records =
                counters.waiting + counters.ready + counters.quarantined
                + Int64(writer.committed.heldCount(stream))
            return Loss(.corrupt, stream, records: records, from: now, to: now)
        }
        queue.unrecorded.withLock { $0.add(losses.filter { $0.records > 0 }) }
    }
}
