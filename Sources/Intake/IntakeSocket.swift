// A connection to the intake socket, as the client sees it.
import CLinux
import Glibc
import Host
import JSON

/// Sends lines and reads their answers without blocking.
final class IntakeSocket {
    enum Answer: Equatable {
        case accepted
        /// The gateway's message.
        case refused(String)
    }

    private struct Reply: Decodable {
        var accepted: Int?
        var error: String?
    }

    private let socket: Descriptor
    private var input = LineBuffer()
    /// Lines that are not sent yet.
    var outgoing: [UInt8] = []
    /// True until `{"wait": true}` is answered; no line is sent before.
    var isGreeting: Bool

    init(path: String, greets: Bool) throws(SystemError) {
        socket = try UnixSocket.connect(to: path)
        isGreeting = greets
        if greets { outgoing = IntakeLine.waitForRate + [10] }
    }

    var number: Int32 { socket.number }

    var events: Int16 { PollEntry.readable | (outgoing.isEmpty ? 0 : PollEntry.writable) }

    /// Sends as much as the socket accepts; false if the gateway is gone.
    func send() -> Bool {
        guard !outgoing.isEmpty else { return true }
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = Glibc.send(socket.number, outgoing, outgoing.count, flags)
        guard count > 0 else { return errno == EAGAIN || errno == EINTR }
        outgoing.removeFirst(count)
        return true
    }

    /// Reads all available bytes; false at the end of the input.
    func receive() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { buffer in
            while true {
                let flags = Int32(MSG_DONTWAIT)
                let count = recv(socket.number, buffer.baseAddress, buffer.count, flags)
                guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
                input.append(buffer[..<count])
            }
        }
    }

    /// Returns the next answer from the bytes read.
    func nextAnswer() -> Answer? {
        guard let line = input.next(limit: 64 << 10) else { return nil }
        guard case .whole(let bytes) = line, let reply: Reply = try? JSONInput.decode(from: bytes)
        else { return .refused("the gateway's answer cannot be read") }
        // 1 answers a line, 0 answers `{"wait": true}`.
        return reply.accepted == (isGreeting ? 0 : 1)
            ? .accepted : .refused(reply.error ?? "refused without a reason")
    }
}
