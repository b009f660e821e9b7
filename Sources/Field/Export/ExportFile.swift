// The output of an export.
import CLinux
import Glibc
import Host

/// Writes an export to a file that appears once complete, to standard output, or to a device.
final class ExportFile {
    private static let blockSize = 64 << 10

    private let path: String
    /// The path of the incomplete file; nil if written in place.
    private let part: String?
    private let descriptor: Descriptor
    private let modified: WallTime?
    private var block: [UInt8] = []
    private var isWhole = false

    /// `isNamedByUs`: a person chose only the folder, so that a link of the name is replaced.
    ///
    /// `holdsAudio`: only the owner and the group may read it, because people's voices may be in
    /// it. `modified`: its modification time; nil for now.
    init(
        _ path: String?,
        isNamedByUs: Bool = false,
        holdsAudio: Bool = false,
        modified: WallTime? = nil
    ) throws {
        self.modified = modified
        guard let path, path != "-" else {
            (self.path, part) = ("standard output", nil)
            descriptor = Descriptor(owning: dup(STDOUT_FILENO))
            return
        }
        self.path = path
        part = isNamedByUs || Self.isReplaced(path) ? path + ".part" : nil
        // In another user's folder, a link of that name could lead root elsewhere.
        let create = part == nil ? 0 : O_CREAT | O_NOFOLLOW
        let flags = O_WRONLY | create | O_TRUNC | O_CLOEXEC
        let number = open(part ?? path, flags, holdsAudio ? 0o640 : 0o644)
        guard number >= 0 else { throw Failure("\(SystemError.last("open", on: path))") }
        descriptor = Descriptor(owning: number)
    }

    deinit {
        if let part, !isWhole { unlink(part) }
    }

    /// Returns whether a path is a new or regular file, not a device, pipe or link (`/dev/null`).
    private static func isReplaced(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
    }

    func write(_ bytes: [UInt8]) throws {
        keep(bytes)
        try pour()
    }

    /// Buffers bytes for `pour`; never blocks.
    func keep(_ bytes: [UInt8]) { block += bytes }

    /// Writes the buffer once it holds a block; may block.
    func pour() throws { if block.count >= Self.blockSize { try flush() } }

    private func flush() throws {
        if let error = writeAll(block, to: descriptor.number) {
            throw Failure("\(SystemError(error.call, on: path, code: error.code))")
        }
        block.removeAll(keepingCapacity: true)
    }

    func close() throws {
        try flush()
        modified?.setModification(of: descriptor.number)
        guard let part else { return }
        guard rename(part, path) == 0 else {
            throw Failure("\(SystemError.last("rename", on: path))")
        }
        isWhole = true
    }

    /// Syncs the file system, so that a stick can be pulled out once the command has ended.
    static func sync(_ path: String) throws {
        var status = stat()
        guard stat(path, &status) != 0 || [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
        else { return }
        do throws(SystemError) {
            let descriptor = try Descriptor(opening: path, O_RDONLY)
            guard waypost_sync_file_system(descriptor.number) == 0 else {
                throw SystemError.last("syncfs", on: path)
            }
        } catch {
            throw Failure("\(error)")
        }
    }
}
