// A buffer that moves to a file when it grows.
import Glibc
import Host

/// Collects bytes: in memory up to a bound, beyond it in an unlinked file.
///
/// Used by one thread at a time.
package final class Spool {
    private let folder: String
    private let bound: Int
    private var memory: [UInt8] = []
    private var file: Int32 = -1
    package private(set) var count = 0

    /// The prefix of the files' names during the short time before they are unlinked.
    package static let prefix = ".receiver-body-"

    /// `folder`: for the file; `memory`: the bytes that are kept in memory.
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

    /// Passes all bytes to `body`; a file is mapped during the call.
    package func withView<Value>(_ body: (ByteView) throws -> Value) throws -> Value {
        guard file >= 0 else {
            mustHold(memory.count == count, "a body has the bytes that were added")
            return try memory.withUnsafeBytes { try body(ByteView($0, isMapped: false)) }
        }
        let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0)
        guard let start, start != MAP_FAILED else { throw SystemError.last("mmap", on: "a body") }
        defer { munmap(start, count) }
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        return try body(ByteView(bytes, isMapped: true))
    }

    /// Returns up to `limit` bytes from `place` on; none at the end.
    package func bytes(from place: Int, atMost limit: Int) throws -> [UInt8] {
        guard file >= 0 else { return Array(memory.dropFirst(place).prefix(limit)) }
        let size = max(0, min(limit, count - place))
        return try readBytes(size, of: file, at: Int64(place), "a body in \(folder)")
    }

    private func moveToFile() throws {
        var name = Array("\(folder)/\(Self.prefix)XXXXXX".utf8CString)
        file = mkstemp(&name)
        guard file >= 0, fcntl(file, F_SETFD, FD_CLOEXEC) == 0 else {
            throw SystemError.last("open", on: "\(folder)/\(Self.prefix)")
        }
        unlink(name)
        try memory.withUnsafeBytes(write)
        memory = []
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard writeAll(Array(bytes), to: file) == nil else {
            throw SystemError.last("write", on: "a body in \(folder)")
        }
    }
}
