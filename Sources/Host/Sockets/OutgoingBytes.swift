// Bytes on their way to a program that is connected to a socket.
import CLinux
import Glibc

/// What a program has not taken yet; sending it never waits.
package struct OutgoingBytes {
    private var bytes: [UInt8] = []
    /// Since when it has taken nothing of what waits.
    package private(set) var stalledSince: BootInstant?

    package init(stalledSince: BootInstant? = nil) {
        self.stalledSince = stalledSince
    }

    package enum Outcome {
        case moved
        case waits
        /// It takes nothing any more.
        case refused
    }

    package var isEmpty: Bool { bytes.isEmpty }
    package var count: Int { bytes.count }

    package mutating func append(line: [UInt8]) { bytes += line + [10] }

    /// Sends what there is, as far as it is taken.
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
