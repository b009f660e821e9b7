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
