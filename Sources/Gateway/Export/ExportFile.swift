// Where an export goes.
import CLinux
import Glibc
import Host

/// Where an export is written: a file that appears when it is whole, standard output, or what takes no other's place.
final class ExportFile {
    private static let blockSize = 64 << 10

    private let path: String
    /// Is there until the file is whole; nil: written where it goes.
    private let part: String?
    private let descriptor: Descriptor
    private var block: [UInt8] = []
    private var isWhole = false

    init(_ path: String?) throws {
        guard let path, path != "-" else {
            (self.path, part) = ("standard output", nil)
            descriptor = Descriptor(owning: dup(STDOUT_FILENO))
            return
        }
        self.path = path
        part = Self.isReplaced(path) ? path + ".part" : nil
        let create = part == nil ? 0 : O_CREAT
        let number = open(part ?? path, O_WRONLY | create | O_TRUNC | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw Failure("\(SystemError.last("open", on: path))") }
        descriptor = Descriptor(owning: number)
    }

    deinit {
        if let part, !isWhole { unlink(part) }
    }

    /// Not a device, a pipe or a link (`/dev/null`, `/dev/stdout`): a file in its place would be no such thing.
    private static func isReplaced(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
    }

    func write(_ bytes: [UInt8]) throws {
        keep(bytes)
        try pour()
    }

    /// To be written later, by `pour`: it waits for nobody.
    func keep(_ bytes: [UInt8]) { block += bytes }

    /// Writes what is kept, once it is enough for that.
    func pour() throws { if block.count >= Self.blockSize { try flush() } }

    private func flush() throws {
        var rest = block[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.write(descriptor.number, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw Failure("\(SystemError.last("write", on: path))")
            }
            rest = rest.dropFirst(count)
        }
        block.removeAll(keepingCapacity: true)
    }

    func close() throws {
        try flush()
        guard let part else { return }
        guard rename(part, path) == 0 else {
            throw Failure("\(SystemError.last("rename", on: path))")
        }
        isWhole = true
    }

    /// Has all that was written on the disk: a stick may be pulled out as soon as the command has ended.
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
