// One owner for a file descriptor, and poll(2) over several.
import CLinux
import Glibc

/// Owns a file descriptor and closes it.
package struct Descriptor: ~Copyable, Sendable {
    package let number: Int32

    /// Takes over `number`; it must not be closed by anyone else.
    package init(owning number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }
}

extension Descriptor {
    /// Opens a file, a folder or a device (open(2)); child processes do not inherit it.
    ///
    /// Errors name `subject`, or the path.
    package init(
        opening path: String,
        _ flags: Int32,
        mode: UInt32 = 0,
        for subject: String? = nil
    ) throws(SystemError) {
        let number = open(path, flags | O_CLOEXEC, mode)
        guard number >= 0 else { throw SystemError.last("open", on: subject ?? path) }
        self.init(owning: number)
    }

    /// Opens `name` in an open folder (openat(2)); does not follow a symbolic link of that name.
    ///
    /// Errors name `path`.
    package init(
        opening name: String,
        in folder: borrowing Descriptor,
        _ flags: Int32,
        mode: UInt32 = 0,
        for path: String
    ) throws(SystemError) {
        let number = openat(folder.number, name, flags | O_CLOEXEC | O_NOFOLLOW, mode)
        guard number >= 0 else { throw SystemError.last("open", on: path) }
        self.init(owning: number)
    }

    /// Changes the owner of the open file (fchown(2)), even if its name now leads elsewhere.
    package borrowing func give(to owner: FileOwner, _ path: String) throws(SystemError) {
        guard fchown(number, owner.user, owner.group) == 0 else {
            throw SystemError.last("chown", on: path)
        }
    }

    /// Writes all bytes in one call; throws ENOSPC after a short write.
    ///
    /// Errors name `path`.
    package borrowing func write(whole bytes: [UInt8], _ path: String) throws(SystemError) {
        let count = Glibc.write(number, bytes, bytes.count)
        if count < 0 { throw SystemError.last("write", on: path) }
        guard count == bytes.count else { throw SystemError("write", on: path, code: ENOSPC) }
    }

    /// Fsyncs the file; for a folder, its list of names.
    package borrowing func sync(_ path: String) throws(SystemError) {
        guard fsync(number) == 0 else { throw SystemError.last("fsync", on: path) }
    }
}

/// Returns a pipe's end for reading and the one for writing; a program that is started gets neither.
package func makePipe() throws(SystemError) -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    guard waypost_pipe(&ends) == 0 else { throw .last("pipe") }
    return (ends[0], ends[1])
}

/// Reads to the end, or `limit` bytes; errors name `path`.
package func readAll(
    from descriptor: Int32,
    limit: Int = .max,
    _ path: String
) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while bytes.count < limit {
        let count = read(descriptor, &buffer, min(buffer.count, limit - bytes.count))
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw SystemError.last("read", on: path) }
        if count == 0 { break }
        bytes += buffer.prefix(count)
    }
    return bytes
}

/// Writes all bytes, however long that takes; stops at the first error.
///
/// Returns nil if everything was written, else the error of write(2).
@discardableResult package func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> SystemError? {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return .last("write") }
        rest = rest.dropFirst(count)
    }
    return nil
}

/// One descriptor to wait for, and the events that poll(2) returned for it.
package struct PollEntry: Sendable {
    package var descriptor: Int32
    package var events: Int16
    package var result: Int16 = 0

    package static let readable = Int16(POLLIN)
    package static let writable = Int16(POLLOUT)

    package init(_ descriptor: Int32, _ events: Int16 = Self.readable) {
        self.descriptor = descriptor
        self.events = events
    }

    /// The descriptor is readable, closed or failed; a read shows which.
    package var isReady: Bool { result != 0 }

    /// The other side closed both directions, or the descriptor failed; reported for any `events`.
    package var isHungUp: Bool { result & Int16(POLLHUP | POLLERR) != 0 }
}

/// Waits until an entry is ready, at most `timeout` (nil: for ever); returns how many are ready.
///
/// A signal (EINTR) ends the wait early with 0, as a timeout does.
package func wait(for entries: inout [PollEntry], timeout: Duration? = nil) -> Int {
    var descriptors = entries.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
    let limit =
        timeout.map { Int32(clamping: max(0, ($0.nanoseconds + 999_999) / 1_000_000)) } ?? -1
    let ready = poll(&descriptors, nfds_t(descriptors.count), limit)
    for index in entries.indices {
        entries[index].result = ready > 0 ? descriptors[index].revents : 0
    }
    return Int(max(0, ready))
}
