// One end of a connected socket on which both sides send lines.
import CLinux
import Glibc

/// Receives and sends bytes without blocking; used by one thread.
package class LineChannel {
    package enum Outcome {
        case moved
        case waits
        /// The other side has closed, or the connection has failed.
        case ended
    }

    private let socket: Descriptor
    package var input = LineBuffer()
    /// Bytes that are not sent yet.
    package var outgoing: [UInt8] = []
    private var lastWait: BootInstant?

    package init(_ socket: consuming Descriptor) { self.socket = socket }

    package var number: Int32 { socket.number }

    /// The events of poll(2) that concern `outgoing`.
    package var sendEvents: Int16 { outgoing.isEmpty ? 0 : PollEntry.writable }

    /// The time since which the other side has read nothing of what waits for it.
    package var stalledSince: BootInstant? { outgoing.isEmpty ? nil : lastWait }

    /// Discards whatever the other side sends from now on.
    package func refuseInput() { shutdown(number, Int32(SHUT_RD)) }

    /// Reads once into `input`.
    package func receive(atMost size: Int = 16 << 10) -> Outcome {
        withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { buffer in
            let count = recv(number, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return Self.unmoved(isEnd: count == 0) }
            input.append(buffer[..<count])
            return .moved
        }
    }

    /// Sends as much of `outgoing` as the socket accepts.
    package func send(now: BootInstant) -> Outcome {
        guard !outgoing.isEmpty else { return .waits }
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = Glibc.send(number, outgoing, outgoing.count, flags)
        guard count > 0 else {
            lastWait = lastWait ?? now
            return Self.unmoved(isEnd: false)
        }
        outgoing.removeFirst(count)
        lastWait = outgoing.isEmpty ? nil : now
        return .moved
    }

    private static func unmoved(isEnd: Bool) -> Outcome {
        isEnd || (errno != EAGAIN && errno != EINTR) ? .ended : .waits
    }
}
