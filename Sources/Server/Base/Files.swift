// Files and folders that survive a power cut.
import CLinux
import Foundation
import Glibc
import Host

/// A file that is open for writing.
package struct WrittenFile: ~Copyable {
    private let file: Descriptor
    private let path: String

    package init(_ path: String) throws {
        file = try Descriptor(opening: path, O_WRONLY | O_CREAT, mode: 0o640)
        self.path = path
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws {
        try writeBytes(bytes, to: file.number, at: offset, path)
    }

    /// Throws if the file is shorter than this: data after a hole would be unreadable.
    package func expectBytes(before place: Int64) throws {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw SystemError.last("stat", on: path) }
        guard status.st_size >= place else {
            throw Failure("\(path) was moved away or emptied while a batch was written to it")
        }
    }

    /// Cuts off everything after `length`.
    package func cut(at length: Int64) throws {
        guard ftruncate(file.number, Int(length)) == 0 else {
            throw SystemError.last("truncate", on: path)
        }
    }
}

/// Creates the archive's folders; used by one thread at a time.
package final class DurableFolders {
    /// The number of folders remembered; the others are only checked once more.
    private static let maximum = 10_000

    package let directory: String
    private var known: Set<String> = []
    /// Folders that got a new folder in them, by path.
    private var changed: Set<String> = []

    package init(_ directory: String) { self.directory = directory }

    /// Creates a folder and its parents; they are durable once the paths of `takeChanged` are
    /// synced.
    package func make(_ folder: String) throws {
        guard !known.contains(folder) || access("\(directory)/\(folder)", F_OK) != 0 else { return }
        var path = directory
        var part = ""
        for name in folder.split(separator: "/") {
            guard name != ".." else { throw Failure("\(folder) leads out of \(directory)") }
            let parent = path
            path += "/" + name
            part += "/" + name
            let isNew = mkdir(path, 0o750) == 0
            guard isNew || errno == EEXIST else { throw SystemError.last("mkdir", on: path) }
            // Nothing is known after a start: an existing folder may have been made just before a
            // crash.
            if isNew || !known.contains(part) { changed.insert(parent) }
            known.insert(part)
        }
        if known.count >= Self.maximum { known = [] }
        known.insert(folder)
    }

    /// Returns the folders to sync after folders were created in them.
    package func takeChanged() -> Set<String> {
        defer { changed = [] }
        return changed
    }

    /// Forgets which folders are on the disk, after a sync that failed or did not happen.
    package func forget() {
        known = []
        changed = []
    }
}

/// Syncs these files and folders; many of them with one syncfs(2) per file system, which takes a
/// disk as long as one fsync.
///
/// A person may have put a part of the archive, such as `audio`, on a disk of its own.
package func syncAll(_ paths: [String]) throws {
    guard paths.count > 3 else {
        for path in paths { try Descriptor(opening: path, O_RDONLY).sync(path) }
        return
    }
    for path in try onePathPerFileSystem(paths) { try syncFileSystem(of: path) }
}

/// Returns one of these paths for each file system that they are on.
package func onePathPerFileSystem(_ paths: [String]) throws -> [String] {
    var found: [dev_t: String] = [:]
    for path in paths {
        var status = stat()
        guard stat(path, &status) == 0 else { throw SystemError.last("stat", on: path) }
        found[status.st_dev] = path
    }
    return Array(found.values)
}

/// Returns the size of a file in bytes; nil if there is none.
package func fileSize(_ path: String) -> Int64? {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : nil
}

/// Deletes a database and its journals.
package func removeDatabase(_ path: String) {
    for end in ["", "-wal", "-shm", "-journal"] { unlink(path + end) }
}

/// Allows one receiver per directory: a second one's recovery would cut off what the first writes.
package final class DirectoryLock: Sendable {
    private let file: Descriptor

    /// Creates the directory if needed, and locks it.
    ///
    /// `option`: the start of its name in errors; `inUse`: the error if another process has it.
    package init(
        _ directory: String,
        option: String = "--data ",
        inUse: String = "another receiver uses this directory"
    ) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true
            )
        } catch {
            throw StartError("\(option)\(directory) cannot be created", error)
        }
        guard access(directory, W_OK | X_OK) == 0 else {
            let cause = SystemError.last("access", on: directory)
            throw StartError("\(option)\(directory) cannot be written", cause)
        }
        let path = "\(directory)/.receiver.lock"
        file = try Descriptor(opening: path, O_RDWR | O_CREAT, mode: 0o640)
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
            throw Failure("\(directory): \(inUse)")
        }
    }
}
