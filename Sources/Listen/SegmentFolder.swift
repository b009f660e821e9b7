// A private folder in memory for the segment that a detector reads.
import Audio
import AudioFiles
import CLinux
import Glibc
import Host

/// Owns a folder on a tmpfs that only this user can enter, and deletes it at the end.
final class SegmentFolder {
    private static let prefix = "waypost-listen-"

    private let path: String
    /// Held while this program uses the folder.
    private let lock: Int32

    /// Makes the folder in the user's runtime directory, else in /dev/shm.
    ///
    /// Deletes those of this user's programs that were killed.
    ///
    /// Throws a `Failure` if none of them is in memory and writable.
    init(environment: [String: String]) throws {
        let candidates = [environment["XDG_RUNTIME_DIR"], "/dev/shm"].compactMap { $0 }
        // A lazy `compactMap` would make a folder twice.
        for folder in candidates where Self.isInMemory(folder) {
            guard let made = Self.make(in: folder) else { continue }
            (path, lock) = made
            return
        }
        throw Failure(
            "no folder in memory for the segments: \(candidates.joined(separator: ", ")) "
                + "cannot be used; set XDG_RUNTIME_DIR to a writable folder on a tmpfs"
        )
    }

    deinit {
        clear()
        rmdir(path)
        close(lock)
    }

    private static func isInMemory(_ path: String) -> Bool {
        path.hasPrefix("/") && waypost_is_in_memory(path) == 1
    }

    /// mkdtemp(3): mode 0700, a name that did not exist.
    private static func make(in folder: String) -> (path: String, lock: Int32)? {
        deleteAbandoned(in: folder)
        var template = Array("\(folder)/\(prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return nil }
        let path = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) },
            as: UTF8.self
        )
        guard let lock = lock(path) else { return nil }
        return (path, lock)
    }

    private static func deleteAbandoned(in folder: String) {
        for name in names(inFolder: folder) where name.hasPrefix(prefix) {
            let path = "\(folder)/\(name)"
            var about = stat()
            // A folder of no age may be another program's that is about to lock it.
            guard lstat(path, &about) == 0, about.st_uid == getuid(),
                time(nil) - about.st_mtim.tv_sec > 60, let lock = lock(path)
            else { continue }
            delete(in: path)
            rmdir(path)
            close(lock)
        }
    }

    /// Locks a folder; nil if it is not one, or another program holds it.
    private static func lock(_ path: String) -> Int32? {
        let number = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { return nil }
        if flock(number, LOCK_EX | LOCK_NB) == 0 { return number }
        close(number)
        return nil
    }

    /// Writes a segment as a WAV file, at another rate if one is given; returns its path.
    func write(_ segment: AudioSegment, rate: Int?) throws -> String {
        var (samples, rate) = (segment.samples, rate ?? segment.rate)
        if rate != segment.rate {
            let resampler = try Resampler(from: segment.rate, to: rate)
            samples = []
            resampler.convert(segment.samples.map(\.fullScale), into: &samples)
            resampler.finish(into: &samples)
        }
        // Detectors choose by the ending, and some read the time from the name.
        let name = segment.start.rfc3339.filter { $0 != "-" && $0 != ":" } + ".wav"
        let file = "\(path)/\(name)"
        let owner = try Descriptor(opening: file, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        let bytes =
            WaveFile.header(rate: rate, frames: samples.count) + samples.littleEndianBytes
        if let error = writeAll(bytes, to: owner.number) { throw error }
        return file
    }

    /// Deletes the segment, and what the detector wrote beside it.
    func clear() { Self.delete(in: path) }

    private static func delete(in folder: String) {
        guard let open = opendir(folder) else { return }
        defer { closedir(open) }
        while let entry = readdir(open) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name != ".", name != ".." else { continue }
            // A link is deleted, never followed.
            if unlink("\(folder)/\(name)") != 0, errno == EISDIR {
                delete(in: "\(folder)/\(name)")
                rmdir("\(folder)/\(name)")
            }
        }
    }
}
