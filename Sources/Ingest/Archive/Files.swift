// Files and folders that outlast a power cut.
import Foundation
import Glibc

/// A file that is open for writing; closed with its owner.
struct WrittenFile: ~Copyable {
    private let number: Int32
    private let path: String

    init(_ path: String) throws {
        let number = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
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

    /// Cuts off what is behind, and waits for the disk.
    func finish(at length: Int64) throws {
        guard ftruncate(number, Int(length)) == 0, fsync(number) == 0 else {
            throw Trouble("fsync", path)
        }
    }
}

/// The folders of an archive, each durable in the one above it; used by one thread at a time.
final class DurableFolders {
    /// So many are remembered; the others are only synced once more.
    private static let most = 10_000

    let directory: String
    private var known: Set<String> = []

    init(_ directory: String) { self.directory = directory }

    func make(_ folder: String) throws {
        guard !known.contains(folder) else {
            // Somebody may have archived it.
            if access("\(directory)/\(folder)", F_OK) == 0 { return }
            known = []
            return try make(folder)
        }
        var path = directory
        for part in folder.split(separator: "/") {
            let parent = path
            path += "/" + part
            guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw Trouble("mkdir", path) }
            try syncFolder(parent)
        }
        if known.count >= Self.most { known = [] }
        known.insert(folder)
    }
}

func syncFolder(_ folder: String) throws {
    let number = open(folder, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { throw Trouble("open", folder) }
    defer { close(number) }
    guard fsync(number) == 0 else { throw Trouble("fsync", folder) }
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
        number = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
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
