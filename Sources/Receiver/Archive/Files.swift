// Files and folders that outlast a power cut.
import CLinux
import Foundation
import Glibc

/// A file that is open for writing; closed with its owner.
struct WrittenFile: ~Copyable {
    private let number: Int32
    private let path: String

    init(_ path: String) throws {
        let number = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o640)
        guard number >= 0 else { throw Trouble("open", path) }
        self.number = number
        self.path = path
    }

    deinit { close(number) }

    func write(_ bytes: [UInt8], at offset: Int64) throws {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(
                    number,
                    $0.baseAddress.map { $0 + done },
                    $0.count - done,
                    Int(offset) + done
                )
            }
            guard count > 0 else { throw Trouble("write", path) }
            done += count
        }
    }

    /// Throws where they are not there: behind a hole nobody could read what is written.
    func expectBytes(before place: Int64) throws {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw Trouble("stat", path) }
        guard status.st_size >= place else {
            throw Trouble("\(path) was moved away or emptied while a batch was written to it")
        }
    }

    /// Cuts off what is behind.
    func cut(at length: Int64) throws {
        guard ftruncate(number, Int(length)) == 0 else { throw Trouble("truncate", path) }
    }
}

/// The folders of an archive; used by one thread at a time.
final class DurableFolders {
    /// So many are remembered; the others are only looked at once more.
    private static let most = 10_000

    let directory: String
    private var known: Set<String> = []
    /// Folders that hold a new one, by their paths.
    private var changed: Set<String> = []

    init(_ directory: String) { self.directory = directory }

    /// Makes a folder and those above it; each is durable once what `takeChanged` gives is on the disk.
    func make(_ folder: String) throws {
        guard !known.contains(folder) || access("\(directory)/\(folder)", F_OK) != 0 else { return }
        var path = directory
        var part = ""
        for name in folder.split(separator: "/") {
            let parent = path
            path += "/" + name
            part += "/" + name
            let isNew = mkdir(path, 0o750) == 0
            guard isNew || errno == EEXIST else { throw Trouble("mkdir", path) }
            // A start knows of none: one that is there may have been made just before a crash.
            if isNew || !known.contains(part) { changed.insert(parent) }
            known.insert(part)
        }
        if known.count >= Self.most { known = [] }
        known.insert(folder)
    }

    /// What is to be brought to the disk for the folders that were made.
    func takeChanged() -> Set<String> {
        defer { changed = [] }
        return changed
    }

    /// What was made is not known to be on the disk.
    func forget() {
        known = []
        changed = []
    }
}

/// Waits until these files and folders are on the disk; many of them at once, for each by itself takes a disk as long.
func syncAll(_ paths: [String], in directory: String) throws {
    guard paths.count > 3 else {
        for path in paths { try sync(path) { fsync($0) } }
        return
    }
    try sync(directory) { waypost_sync_file_system($0) }
}

func syncFolder(_ folder: String) throws { try sync(folder) { fsync($0) } }

private func sync(_ path: String, _ call: (Int32) -> Int32) throws {
    let number = open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { throw Trouble("open", path) }
    defer { close(number) }
    guard call(number) == 0 else { throw Trouble("fsync", path) }
}

/// Bytes of a file; nil where there is none.
func fileSize(_ path: String) -> Int64? {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : nil
}

/// One receiver a directory: a second one's recovery would cut off what the first is writing.
final class DirectoryLock: Sendable {
    private let number: Int32

    /// Makes the directory where it is not there.
    init(_ directory: String) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true
            )
        } catch {
            throw StartFailure("--data \(directory) cannot be made a folder", error)
        }
        guard access(directory, W_OK | X_OK) == 0 else {
            let cause = Trouble("access", directory)
            throw StartFailure("--data \(directory) cannot be written", cause)
        }
        let path = "\(directory)/.receiver.lock"
        number = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o640)
        guard number >= 0 else { throw Trouble("open", path) }
        guard flock(number, LOCK_EX | LOCK_NB) == 0 else {
            close(number)
            throw Trouble("\(directory): another receiver uses this directory")
        }
    }

    deinit { close(number) }
}

/// A call of the system that failed.
package struct Trouble: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) {
        self.description = description
    }

    /// With the reason in `errno`.
    package init(_ call: String, _ path: String) {
        description = "\(call) \(path): \(String(cString: strerror(errno)))"
    }
}
