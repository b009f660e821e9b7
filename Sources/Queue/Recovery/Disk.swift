// The queue's file operations besides SQLite; injected, so that a simulator can replace them.
import CLinux
import Glibc
import Host
import SQLite

/// The queue's own file operations.
package protocol QueueDisk: Sendable {
    /// The name of SQLite's VFS for this disk; nil for the default.
    var vfs: String? { get }
    /// Whether a file exists; true if it cannot be inspected now.
    func exists(_ path: String) -> Bool
    /// Returns a file's size in bytes; 0 if it does not exist.
    func size(_ path: String) -> Int64
    /// Renames a file; returns false if it does not exist.
    ///
    /// Throws `SystemError`.
    func rename(_ path: String, to other: String) throws -> Bool
    /// Removes a file; returns false if it did not exist or could not be removed.
    @discardableResult func remove(_ path: String) -> Bool
    /// Returns the identity of the file at a path; nil if it cannot be determined now.
    ///
    /// Never opens the file: closing a descriptor of the database would drop SQLite's locks.
    func identity(_ path: String) -> FileIdentity?
    /// Returns the names of the files in a folder; empty if they cannot all be read.
    func names(in folder: String) -> [String]
    /// Reads at most `count` bytes; fewer at the end, none if the file does not exist.
    ///
    /// Throws `SQLiteError`, as SQLite's own reads do.
    func read(_ path: String, at place: Int64, count: Int) throws -> [UInt8]
    /// Replaces a small file and waits until it is on disk; throws.
    func write(_ path: String, _ bytes: [UInt8]) throws
    /// Rewrites a file's contents and waits until they are on disk; does nothing without a file.
    ///
    /// A failed fsync is reported only once. Its pages still read well and count as written, but
    /// vanish at a power cut (fsync(2), Linux since 4.13). Throws `SQLiteError`, but not if the
    /// disk is full.
    func writeAgain(_ path: String) throws
    /// Extends a file with zeros or truncates it, and waits until that is on disk.
    ///
    /// Throws `SQLiteError`.
    func extend(_ path: String, to bytes: Int64) throws
    /// Creates a file that occupies `bytes`; returns false, and leaves no file, if they do not fit.
    func reserve(_ path: String, bytes: Int64) -> Bool
    /// Returns the free bytes of a folder's file system; nil if unknown.
    func free(_ folder: String) -> Int64?
}

/// Identifies the file at a path, to notice when it is deleted or replaced.
package enum FileIdentity: Sendable, Equatable {
    case none
    case file(device: UInt64, inode: UInt64)
}

extension QueueDisk {
    /// Returns nil: files are never replaced on this disk.
    package func identity(_ path: String) -> FileIdentity? { nil }
}

/// The system's files.
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
        try SmallFile.replace(path, bytes, mode: 0o600)
    }

    package func writeAgain(_ path: String) throws {
        do { try Host.writeAgain(path) } catch { throw SQLiteError.refused(path) }
    }

    package func extend(_ path: String, to bytes: Int64) throws {
        // SQLite would create a missing file.
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
