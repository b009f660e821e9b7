// The disk as the queue sees it beside SQLite: passed in, so that a simulator can give one of its own.
import CLinux
import Glibc
import Host
import SQLite

/// What the queue does with files by itself.
package protocol QueueDisk: Sendable {
    /// The name of SQLite's file system layer for it; nil for SQLite's own.
    var vfs: String? { get }
    /// Also of one that cannot be looked at now.
    func exists(_ path: String) -> Bool
    /// Bytes of a file, 0 without one.
    func size(_ path: String) -> Int64
    /// Throws SystemError; false where there is no such file.
    func rename(_ path: String, to other: String) throws -> Bool
    /// False where there was nothing to remove, or it could not be.
    @discardableResult func remove(_ path: String) -> Bool
    /// Which file a path names; nil where that cannot be told now.
    ///
    /// Never opens the file: closing a descriptor of the database would drop SQLite's locks.
    func identity(_ path: String) -> FileIdentity?
    /// Names of the files in a folder; none where they cannot all be read.
    func names(in folder: String) -> [String]
    /// At most `count` bytes from a place on; fewer at the end, none where there is no such file.
    ///
    /// Throws SQLiteError as SQLite's own reads do.
    func read(_ path: String, at place: Int64, count: Int) throws -> [UInt8]
    /// Writes a small file anew, and waits until it is on the disk. Throws.
    func write(_ path: String, _ bytes: [UInt8]) throws
    /// Writes what a file reads as to the disk once more, and waits until it is there; nothing without a file.
    ///
    /// A sync that failed tells it once: its pages read well, count as written, and are gone at a power cut
    /// (fsync(2), Linux since 4.13). Throws SQLiteError; a full disk is no reason.
    func writeAgain(_ path: String) throws
    /// Makes a file that long, with zeros at its end, or cut, and waits until it is so on the disk.
    ///
    /// Throws SQLiteError.
    func extend(_ path: String, to bytes: Int64) throws
    /// Makes a file that takes up so much room; false, and no file, where there is not so much.
    func reserve(_ path: String, bytes: Int64) -> Bool
    /// Bytes of a folder's file system that may still be used; nil where that cannot be told.
    func free(_ folder: String) -> Int64?
}

/// Which file a path names: it changes when the file is deleted, or replaced by another.
package enum FileIdentity: Sendable, Equatable {
    case none
    case file(device: UInt64, inode: UInt64)
}

extension QueueDisk {
    /// nil: nobody takes files away here.
    package func identity(_ path: String) -> FileIdentity? { nil }
}

/// The system's own files.
package struct SystemDisk: QueueDisk {
    package var vfs: String? { nil }

    package init() {}

    package func exists(_ path: String) -> Bool { access(path, F_OK) == 0 || errno != ENOENT }

    package func size(_ path: String) -> Int64 { FileSpace.size(path) }

    package func identity(_ path: String) -> FileIdentity? {
        var figures = stat()
        guard stat(path, &figures) == 0 else { return errno == ENOENT ? FileIdentity.none : nil }
        return .file(device: UInt64(figures.st_dev), inode: UInt64(figures.st_ino))
    }

    package func rename(_ path: String, to other: String) throws -> Bool {
        if Glibc.rename(path, other) == 0 { return true }
        guard errno == ENOENT else { throw SystemError.last("rename", on: path) }
        return false
    }

    package func remove(_ path: String) -> Bool { unlink(path) == 0 }

    package func names(in folder: String) -> [String] { Host.names(inFolder: folder) }

    package func read(_ path: String, at place: Int64, count: Int) throws -> [UInt8] {
        var figures = stat()
        guard stat(path, &figures) == 0 else {
            if errno == ENOENT { return [] }
            throw SQLiteError.refused(path)
        }
        let there = max(0, min(Int64(count), Int64(figures.st_size) - place))
        var bytes = [UInt8](repeating: 0, count: Int(there))
        let file = try Connection(path: path, access: .readOnly)
        guard file.readFile(at: place, into: &bytes) else { throw SQLiteError.refused(path) }
        return bytes
    }

    package func write(_ path: String, _ bytes: [UInt8]) throws {
        let file = try Descriptor(opening: path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        try file.write(whole: bytes, path)
        try file.sync(path)
        try syncFolder(folder(ofPath: path))
    }

    package func writeAgain(_ path: String) throws {
        do { try Host.writeAgain(path) } catch { throw SQLiteError.refused(path) }
    }

    package func extend(_ path: String, to bytes: Int64) throws {
        // SQLite would make one that is not there.
        guard access(path, F_OK) == 0 else { throw SQLiteError.refused(path) }
        let file = try Connection(path: path, access: .readWrite)
        guard file.cutFile(to: bytes) else { throw SQLiteError.refused(path) }
    }

    package func reserve(_ path: String, bytes: Int64) -> Bool {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o640)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard posix_fallocate(file, 0, Int(bytes)) == 0 else {
            unlink(path)
            return false
        }
        return true
    }

    package func free(_ folder: String) -> Int64? { FileSpace.free(folder) }
}
