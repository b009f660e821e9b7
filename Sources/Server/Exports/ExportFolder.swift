// The folder that an export writes: new files only, each complete when it has its name.
import CLinux
import Foundation
import Glibc
import Host
import ServerArchive

/// The new or empty folder of an export.
///
/// No symbolic link in it is followed, and a file gets its name when it is complete.
final class ExportFolder {
    private static let unfinished = ".part"
    private static let mode: mode_t = 0o640

    let path: String
    private let folder: Descriptor

    /// Creates the folder if needed; throws a `Failure` if it has files, or is part of the archive.
    init(_ path: String, data: String) throws {
        try BackupFolder.expectApart(path, data)
        if mkdir(path, 0o750) != 0, errno != EEXIST { throw SystemError.last("mkdir", on: path) }
        folder = try Descriptor(opening: path, O_RDONLY | O_DIRECTORY)
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
        guard Set(names).isSubset(of: ["lost+found"]) else {
            throw Failure("\(path) is not empty; name a new or an empty folder with --out")
        }
        guard access(path, W_OK | X_OK) == 0 else { throw SystemError.last("write to", on: path) }
        self.path = path
    }

    /// Creates a folder in it.
    func makeFolder(_ name: String) throws {
        guard mkdirat(folder.number, name, 0o750) == 0 else {
            throw SystemError.last("mkdir", on: "\(path)/\(name)")
        }
    }

    /// Writes a whole file; throws a `Failure` if one of that name exists.
    ///
    /// `modified`: its modification time; nil for now.
    func write(_ bytes: [UInt8], to name: String, modified: WallTime? = nil) throws {
        let file = try ExportedFile(name, in: self)
        try file.append(bytes)
        try file.finish(modified: modified)
    }

    /// Syncs the file system, so that a disk can be taken away once the command has ended.
    func sync() throws { try syncFileSystem(of: path) }

    fileprivate func create(_ name: String) throws -> WholeFile {
        let copy = fcntl(folder.number, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw SystemError.last("dup", on: path) }
        return try WholeFile(
            name,
            in: Descriptor(owning: copy),
            as: name + Self.unfinished,
            mode: Self.mode,
            for: "\(path)/\(name)"
        )
    }

    fileprivate func expectNone(_ name: String) throws {
        guard faccessat(folder.number, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 else {
            throw Failure("\(path)/\(name) was written twice; export fewer devices or days")
        }
    }
}

/// A file of an export while it is written; removed by deinit unless it was finished.
final class ExportedFile {
    private static let block = 256 << 10

    private let name: String
    private let folder: ExportFolder
    private let file: WholeFile
    private var waiting: [UInt8] = []

    init(_ name: String, in folder: ExportFolder) throws {
        (self.name, self.folder) = (name, folder)
        file = try folder.create(name)
    }

    func append(_ bytes: some Sequence<UInt8>) throws {
        waiting += bytes
        if waiting.count >= Self.block { try flush() }
    }

    private func flush() throws {
        try file.append(waiting)
        waiting.removeAll(keepingCapacity: true)
    }

    /// Gives the file its name, and a modification time if it has another one than now.
    func finish(modified: WallTime? = nil) throws {
        try flush()
        modified?.setModification(of: file.file.number)
        try folder.expectNone(name)
        try file.finish(isSynced: false)
    }
}
