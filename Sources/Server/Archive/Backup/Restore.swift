// `waypost-receiver restore`: copies a backup into a data folder that has nothing newer.
import CLinux
import Foundation
import Glibc
import Host
import SQLite
import ServerBase

/// A restore of a backup.
///
/// Nothing is changed before all of the backup is checked. A marker comes first and the archive's
/// database last: if the restore is interrupted, the server refuses to start until it was run again.
package final class Restore {
    /// The number of files that an error names.
    private static let maxNamed = 10
    private static let inUse =
        "a server is running on it; stop it first, such as with: systemctl stop waypost-receiver"

    private let backup: String
    private let data: String
    /// The time of the backup's state.
    private let time: String
    private let lock: DirectoryLock
    private let copy: TreeCopy
    private let database: Connection
    private var missing = 0

    /// Opens a backup and locks the data folder, which is created if needed.
    package init(_ backup: String, to data: String) throws {
        try BackupFolder.expectApart(backup, data)
        time = try BackupFolder.time(of: backup)
        (self.backup, self.data) = (backup, data)
        lock = try DirectoryLock(data, inUse: Self.inUse)
        copy = try TreeCopy(from: backup, to: data)
        database = try Connection(path: ArchiveFiles.index(in: backup), access: .readOnly)
        // A server would start with an empty archive in a folder without a database.
        if fileSize(ArchiveFiles.index(in: data)) == nil { try begin() }
    }

    private func begin() throws {
        try SmallFile.replace("\(data)/\(RestoreMarker.name)", Array("\(time)\n".utf8), mode: 0o640)
    }

    /// Restores the backup; returns lines that say what was copied and what to do next.
    package func run() throws -> [String] {
        try expectNothingNewer()
        try expectNoOtherRows()
        try expectWhole()
        try begin()
        try moveArchiveAside()
        try forEachRow { path, length in
            let start = try copy.copiedSize(path) ?? 0
            guard start < length else { return }
            if try !copy.copy(path, start..<length) { missing += 1 }
        }
        try TreeCopy.forEachFile(in: backup) { path, kind in
            guard kind == .other, try isOfKnownDay(path) else { return }
            try copy.copyWhole(path, replaces: false)
        }
        for name in try TreeCopy.stateFiles(in: backup) {
            try copy.copyWhole(name, replaces: false)
        }
        let databases = try TreeCopy.databases(in: backup)
        let last = databases.last.map { "\(data)/\($0)" }
        mustHold(last == ArchiveFiles.index(in: data), "an archive's database comes last")
        for name in databases { try restoreDatabase(name) }
        try copy.sync()
        unlink(aside)
        unlink("\(data)/\(RestoreMarker.name)")
        try syncFolder(data)
        return report()
    }

    private func forEachRow(_ body: (String, Int64) throws -> Void) throws {
        let row = try database.prepare(
            "SELECT path, length FROM files WHERE length>0 ORDER BY path"
        )
        while try row.step() {
            let file = try ArchiveFile(path: row.text(0), length: row.required(1), in: backup)
            try body(file.path, file.length)
        }
    }

    /// Throws a `Failure` if the data folder has records that the backup does not have.
    private func expectNothingNewer() throws {
        var newer: [String] = []
        try TreeCopy.forEachFile(in: data) { path, kind in
            guard kind == .records, let size = try copy.copiedSize(path), size > 0 else { return }
            let length = try ArchiveFiles.length(path, database) ?? 0
            guard try size > length || !copy.isSame(path, before: size) else { return }
            newer.append("\(path) (\(size) bytes, \(length) in the backup)")
        }
        let (here, there) = (try? storedRecords(), try ArchiveFiles.records(database))
        if newer.isEmpty, let here, here > there {
            newer.append(".receiver.sqlite (\(here) records, \(there) in the backup)")
        }
        guard !newer.isEmpty else { return }
        let more = newer.count - Self.maxNamed
        throw Failure(
            "\(data) is newer than the backup of \(time), nothing was changed. Newer: "
                + newer.prefix(Self.maxNamed).joined(separator: ", ")
                + (more > 0 ? " and \(more) more" : "")
                + ". To go back to the backup, move \(data) away, keep it, and restore into an empty folder"
        )
    }

    /// Returns the number of records that the data folder's own database has counted.
    private func storedRecords() throws -> Int64? {
        let path = ArchiveFiles.index(in: data)
        guard fileSize(path) != nil else { return nil }
        return try ArchiveFiles.records(Connection(path: path, access: .readOnly))
    }

    /// Throws a `Failure` if a database that people changed has rows that the backup does not have.
    private func expectNoOtherRows() throws {
        let names = try TreeCopy.databases(in: backup).dropLast().filter { name in
            // The server makes these rows again, and jobs are asked for again.
            ![".receiver-influx", ".receiver-alerts", ".receiver-jobs"].contains {
                name.hasPrefix($0)
            }
                && fileSize("\(data)/\(name)") != nil
        }
        let different = try names.filter(hasOtherRows)
        guard !different.isEmpty else { return }
        throw Failure(
            "\(data) has codes, tokens, viewers or names that the backup of \(time) does not have, nothing was "
                + "changed. To take the backup's, move away: \(different.joined(separator: ", "))"
        )
    }

    private func hasOtherRows(_ name: String) throws -> Bool {
        let path = "\(data)/\(name)"
        do {
            // Opened for writing: the journal of a server that was killed belongs to it.
            let own = try Connection(path: path, access: .readWrite)
            try own.run("ATTACH ? AS backup", "\(backup)/\(name)")
            let sql = "SELECT name FROM main.sqlite_schema WHERE type='table'"
            let tables = try own.rows(sql) { $0.text(0) }
            for table in tables where !table.hasPrefix("sqlite_") {
                // Not compared if empty: it may be of another version.
                guard try own.integer("SELECT 1 FROM main.\"\(table)\"") != nil else { continue }
                let new = "SELECT * FROM main.\"\(table)\" EXCEPT SELECT * FROM backup.\"\(table)\""
                if try own.integer("SELECT EXISTS (\(new))") != 0 { return true }
            }
            return false
        } catch let error as SQLiteError {
            throw Failure("\(path) cannot be compared with the backup; move it away (\(error))")
        }
    }

    private var aside: String { ArchiveFiles.index(in: data) + ".before-restore" }

    /// Renames the data folder's own archive database, if it has one: after an interrupted restore,
    /// a server would cut the files to the lengths in it.
    private func moveArchiveAside() throws {
        let path = ArchiveFiles.index(in: data)
        guard fileSize(path) != nil else { return }
        // A damaged one is replaced, too.
        try? Connection(path: path, access: .readWrite).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        guard rename(path, aside) == 0 else { throw SystemError.last("rename", on: path) }
        removeDatabase(path)
        try copy.sync()
    }

    /// Returns false for audio of a day that was deleted on the server.
    private func isOfKnownDay(_ path: String) throws -> Bool {
        let parts = path.split(separator: "/").map(String.init)
        guard parts.count == 5, parts[0] == "audio" else { return true }
        let records = ArchiveFile.folder(parts[1], parts[2], parts[3])
        return try ArchiveFiles.length(ArchiveFile.path(in: records), database) != nil
    }

    /// Throws a `Failure` if a file of the backup is shorter than its database says.
    private func expectWhole() throws {
        try forEachRow { path, length in
            guard let size = try copy.size(path), size < length else { return }
            throw Failure(
                "\(backup)/\(path) holds \(size) bytes, \(length) were backed up: use another backup, or "
                    + "move this file away to go on without it"
            )
        }
    }

    /// Restores a database; one that is there has nothing else, see `expectNoOtherRows`.
    private func restoreDatabase(_ name: String) throws {
        let path = "\(data)/\(name)"
        try copy.copyDatabase(name)
        if path == ArchiveFiles.index(in: data) { try copy.sync() }
        // A journal of another database must never meet this one.
        removeDatabase(path)
        try copy.rename(name + TreeCopy.unfinished, to: name)
    }

    private func report() -> [String] {
        var lines = [
            "restored \(copy.bytes) bytes of \(copy.files) files to \(data): the state of \(time)"
        ]
        if missing > 0 {
            lines.append("\(missing) files are not in the backup, because they had been moved away")
        }
        return lines + [
            "Start the server. Devices do not send again what they uploaded after the backup; the page "
                + "names those whose record numbers have a hole. On each of them run:",
            "    sudo waypost resend --since \(time)",
        ]
    }
}
