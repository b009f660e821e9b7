// Bytes that may be more than memory is given to.
import Glibc

/// Bytes in the order they came: in memory up to a bound, beyond it in a file that has no name.
///
/// Used by one thread at a time.
package final class Spool {
    private let folder: String
    private let bound: Int
    private var memory: [UInt8] = []
    private var file: Int32 = -1
    private(set) var count = 0

    /// How the files are called for the moment between their making and the loss of their names.
    static let prefix = ".receiver-body-"

    /// `folder`: where the file goes; `memory`: bytes up to which there is none.
    package init(folder: String, memory bound: Int) {
        self.folder = folder
        self.bound = bound
    }

    deinit {
        if file >= 0 { close(file) }
    }

    package func append(_ bytes: UnsafeRawBufferPointer) throws {
        if file < 0, count + bytes.count <= bound {
            memory += bytes
        } else {
            if file < 0 { try moveToFile() }
            try write(bytes)
        }
        count += bytes.count
    }

    /// Gives all bytes to `body`, and takes back what memory a file's took.
    package func withView<Value>(_ body: (ByteView) throws -> Value) throws -> Value {
        guard file >= 0 else {
            return try memory.withUnsafeBytes { try body(ByteView($0, isMapped: false)) }
        }
        let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0)
        guard let start, start != MAP_FAILED else { throw Trouble("mmap", "a body") }
        defer { munmap(start, count) }
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        return try body(ByteView(bytes, isMapped: true))
    }

    /// Some of the bytes; none behind the end.
    func bytes(from place: Int, atMost limit: Int) throws -> [UInt8] {
        guard file >= 0 else { return Array(memory.dropFirst(place).prefix(limit)) }
        var bytes = [UInt8](repeating: 0, count: max(0, min(limit, count - place)))
        guard pread(file, &bytes, bytes.count, place) == bytes.count else {
            throw Trouble("read", "a body in \(folder)")
        }
        return bytes
    }

    private func moveToFile() throws {
        var name = Array("\(folder)/\(Self.prefix)XXXXXX".utf8CString)
        file = mkstemp(&name)
        guard file >= 0, fcntl(file, F_SETFD, FD_CLOEXEC) == 0 else {
            throw Trouble("open", "\(folder)/\(Self.prefix)")
        }
        unlink(name)
        try memory.withUnsafeBytes(write)
        memory = []
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(
                file,
                UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                rest.count
            )
            guard count > 0 else { throw Trouble("write", "a body in \(folder)") }
            rest = rest.dropFirst(count)
        }
    }
}
