// Bytes waiting to be sent to a connected program.
import CLinux
import Glibc

/// An output buffer for one client; sending never blocks.
package struct OutgoingBytes {
    private var bytes: [UInt8] = []
    /// Since when the client has read nothing of what waits; nil while nothing waits.
    package private(set) var stalledSince: BootInstant?

    package init(stalledSince: BootInstant? = nil) {
        self.stalledSince = stalledSince
    }

    package enum Outcome {
        case moved
        case waits
        /// The connection has failed.
        case refused
    }

    package var isEmpty: Bool { bytes.isEmpty }
    package var count: Int { bytes.count }

    package mutating func append(line: [UInt8]) { bytes += line + [10] }

    /// Sends as many bytes as the socket accepts now.
    package mutating func send(on socket: borrowing Descriptor, now: BootInstant) -> Outcome {
        guard !bytes.isEmpty else { return .waits }
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = Glibc.send(socket.number, bytes, bytes.count, flags)
        let isRefused = count < 0 && errno != EAGAIN && errno != EINTR
        if count > 0 { bytes.removeFirst(count) }
        if isRefused { bytes = [] }
        stalledSince = bytes.isEmpty ? nil : count > 0 ? now : stalledSince ?? now
        return isRefused ? .refused : count > 0 ? .moved : .waits
    }
}
