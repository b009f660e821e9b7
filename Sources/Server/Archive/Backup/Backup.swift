// `waypost-receiver backup`: copies a data folder, also while a server writes to it.
import CLinux
import Foundation
import Glibc
import Host
import SQLite
import ServerBase

/// A backup of a data folder.
///
/// The databases are copied before the files. Each record file is then copied up to the length that
/// the copy of the archive's database has: these bytes were on the disk before that was committed,
/// and do not change. So the copy has exactly the records that its database knows. The databases
/// get their names when all files are on the disk; until then, the folder is the backup before.
package final class Backup {
    /// Holds former copies of files that have changed other than by growing.
    private static let replacedName = ".receiver-replaced"

    private let data: String
    private let folder: BackupFolder
    private let copy: TreeCopy
    private let time = SystemClock().wall().rfc3339
    private var replaced: [String] = []
    /// Copies that end elsewhere than the database says, of files that the server does not have.
    private var outdated: [String] = []
    private var links = 0
    /// Record files behind links.
    private var linked = 0
    private var missing = 0

    /// Opens a data folder and the backup's folder, which is created if needed.
    package init(of data: String, in path: String) throws {
        guard fileSize(ArchiveFiles.index(in: data)) != nil else {
            throw Failure("no receiver has run on \(data); set --data to the receiver's folder")
        }
        self.data = data
        folder = try BackupFolder(path, of: data)
        copy = try TreeCopy(from: data, to: path)
    }

    /// Copies what is new; returns a line that says what was copied.
    package func run() throws -> String {
        let databases = try TreeCopy.databases(in: data)
        for name in databases { try copy.copyDatabase(name) }
        try copyRecordFiles()
        try copyOthers()
        try copy.sync()
        try finish(databases)
        return report()
    }

    private func copyRecordFiles() throws {
        let former = ArchiveFiles.index(in: folder.path)
        let database = try Connection(path: former + TreeCopy.unfinished, access: .readOnly)
        var before = "0"
        if fileSize(former) != nil {
            try database.run("ATTACH ? AS former", former)
            try expectLater(database)
            before = "coalesce((SELECT length FROM former.files WHERE path=new.path), 0)"
        }
        let row = try database.prepare(
            "SELECT path, length, \(before) FROM main.files AS new WHERE length>0 ORDER BY path"
        )
        while try row.step() {
            let file = try ArchiveFile(path: row.text(0), length: row.required(1), in: data)
            try copyRecordFile(file.path, to: file.length, knownBefore: row.required(2))
        }
    }

    /// Throws a `Failure` if the backup before is of another server, or of a later time.
    private func expectLater(_ database: borrowing Connection) throws {
        guard try Archive.isSameServer("former", "main", database) else {
            throw Failure("\(folder.path) is of another server than \(data); name a new folder")
        }
        let now = try ArchiveFiles.records(database)
        let before = try ArchiveFiles.totals(database, of: "former").records
        guard before > now else { return }
        throw Failure(
            "\(folder.path) has more records (\(before)) than \(data) (\(now)): it is of another server, "
                + "or of a later time; name a new folder"
        )
    }

    /// Brings the copy of a record file up to a length.
    ///
    /// `before`: its length in the backup before. The bytes behind it are not trusted: a backup
    /// that a power cut ended may have written them.
    private func copyRecordFile(_ path: String, to length: Int64, knownBefore before: Int64) throws
    {
        let copied = try copy.copiedSize(path)
        if copied == length, before == length { return }
        // Moved elsewhere by a person, or deleted after the database was copied.
        guard let size = try sourceSize(path), size >= length else {
            // A shorter copy would make `restore` refuse the whole backup.
            let isWhole = copied == length || (before == length && copied ?? 0 > length)
            if copied != nil, !isWhole { outdated.append(path) }
            return
        }
        let start = min(before, copied ?? 0)
        // A day that was deleted on the server and began again is not known from before.
        let common = before > 0 ? start : min(copied ?? 0, length)
        if start <= length, try copy.isSame(path, before: common) {
            try copy.copy(path, start..<length)
        } else if try copy.copy(path, 0..<length, as: path + TreeCopy.unfinished) {
            replaced.append(path)
        }
    }

    /// Returns the size of a record file, and counts those that are not there or behind a link.
    private func sourceSize(_ path: String) throws -> Int64? {
        do {
            let size = try copy.size(path)
            if size == nil { missing += 1 }
            return size
        } catch is LinkedPathError {
            linked += 1
            return nil
        }
    }

    /// Copies audio and other files; the server writes one before the record that names it.
    private func copyOthers() throws {
        try TreeCopy.forEachFile(in: data) { path, kind in
            switch kind {
            case .records: break
            case .other: try copy.copyWhole(path)
            case .link: links += 1
            }
        }
        for name in try TreeCopy.stateFiles(in: data) { try copy.copyWhole(name) }
    }

    /// Makes this backup the valid one; all its bytes are on the disk.
    private func finish(_ databases: [String]) throws {
        for path in replaced + outdated {
            try copy.rename(path, to: "\(Self.replacedName)/\(time)/\(path)")
        }
        for path in replaced { try copy.rename(path + TreeCopy.unfinished, to: path) }
        for name in databases { try copy.rename(name + TreeCopy.unfinished, to: name) }
        try folder.mark(time)
        try copy.sync()
    }

    private func report() -> String {
        var line =
            "backed up \(data) to \(folder.path): \(copy.bytes) bytes of \(copy.files) files copied"
        if missing > 0 { line += ", \(missing) files were moved away" }
        if links > 0 { line += ", \(links) symbolic links not followed" }
        if linked > 0 { line += ", \(linked) record files behind them are not in the backup" }
        if !replaced.isEmpty {
            line +=
                ", \(replaced.count) changed files replaced (former copies in \(Self.replacedName))"
        }
        if !outdated.isEmpty {
            line +=
                ", \(outdated.count) outdated copies of files that were moved away are in \(Self.replacedName)"
        }
        return line
    }
}
