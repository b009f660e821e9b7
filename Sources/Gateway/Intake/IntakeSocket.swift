// A connection to the intake socket.
import CLinux
import Glibc
import Host
import JSON

/// Sends lines and reads their answers, without ever waiting.
final class IntakeSocket {
    enum Answer: Equatable {
        case accepted
        /// In the gateway's words.
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
    /// The next answer is that to `{"wait": true}`; no line is sent before it.
    var isGreeting: Bool

    init(path: String, greets: Bool) throws(SystemError) {
        socket = try UnixSocket.connect(to: path)
        isGreeting = greets
        if greets { outgoing = IntakeLine.waitForRate + [10] }
    }

    var number: Int32 { socket.number }

    var events: Int16 { PollEntry.readable | (outgoing.isEmpty ? 0 : PollEntry.writable) }

    /// Sends what the other side takes; false when it is gone.
    func send() -> Bool {
        guard !outgoing.isEmpty else { return true }
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = Glibc.send(socket.number, outgoing, outgoing.count, flags)
        guard count > 0 else { return errno == EAGAIN || errno == EINTR }
        outgoing.removeFirst(count)
        return true
    }

    /// Reads what is there; false when nothing more will come.
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

    /// The next answer of those that were read.
    func nextAnswer() -> Answer? {
        guard let line = input.next(limit: 64 << 10) else { return nil }
        guard case .whole(let bytes) = line, let reply: Reply = try? JSONInput.decode(from: bytes)
        else { return .refused("the gateway's answer cannot be read") }
        // To a line it is 1, to `{"wait": true}` 0.
        return reply.accepted == (isGreeting ? 0 : 1)
            ? .accepted : .refused(reply.error ?? "refused without a reason")
    }
}
