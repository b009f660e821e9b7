// Where an export goes.
internal import Board
internal import CLinux
internal import Glibc
internal import Host

/// Where an export is written: a file that appears when it is whole, or standard output.
final class ExportFile {
    private static let blockSize = 64 << 10

    private let path: String?
    private let descriptor: Descriptor
    private var block: [UInt8] = []
    private var isWhole = false

    init(_ path: String?) throws {
        guard let path, path != "-" else {
            self.path = nil
            descriptor = Descriptor(owning: dup(STDOUT_FILENO))
            return
        }
        self.path = path
        let number = open(path + ".part", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw Failure("\(SystemError.last("open", on: path))") }
        descriptor = Descriptor(owning: number)
    }

    deinit {
        if let path, !isWhole { unlink(path + ".part") }
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
                throw Failure("\(SystemError.last("write", on: path ?? "standard output"))")
            }
            rest = rest.dropFirst(count)
        }
        block.removeAll(keepingCapacity: true)
    }

    func close() throws {
        try flush()
        guard let path else { return }
        guard rename(path + ".part", path) == 0 else {
            throw Failure("\(SystemError.last("rename", on: path))")
        }
        isWhole = true
    }

    /// Has all that was written on the disk: a stick may be pulled out as soon as the command has ended.
    static func sync(_ path: String) throws {
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
