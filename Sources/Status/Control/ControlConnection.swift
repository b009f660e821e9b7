// A client connected to the control socket, as the server sees it.
import CLinux
import Glibc
import Host

/// Receives requests and sends replies without blocking, in bounded buffers.
///
/// Used only by the server's thread.
final class ControlConnection {
    /// Limits in bytes: of one request, and of unread replies.
    private static let requestLimit = 4096
    private static let replyLimit = 4 << 20

    /// The state of the last request; the next one is read once it is answered.
    indirect enum Waiting {
        case nothing
        /// Work on another thread.
        case work
        /// Waits for status publication `number` or a later one, or for the deadline.
        ///
        /// The reply is sent with the newest status then. nil: a reply with the status alone.
        case status(ControlReply?, number: Int, deadline: BootInstant)
    }

    /// A unique id; descriptor numbers are reused.
    let id: Int
    /// The user id of the client.
    let user: UInt32
    let socket: Descriptor
    var waiting = Waiting.nothing
    /// The client wants the status after each change.
    var isWatching = false
    private var input = LineBuffer()
    private var outgoing = OutgoingBytes()
    private(set) var lastMoved: BootInstant
    /// The time since which the client has read none of its pending replies.
    var stalledSince: BootInstant? { outgoing.stalledSince }
    private var isGone = false

    init(_ number: Int32, id: Int, now: BootInstant) {
        socket = Descriptor(owning: number)
        user = waypost_peer_user(number)
        self.id = id
        lastMoved = now
    }

    /// True if the client has no pending request or reply and does not watch.
    var isIdle: Bool {
        guard case .nothing = waiting else { return false }
        return !isWatching && outgoing.isEmpty
    }

    /// True if the client disconnected, or broke a limit.
    var isOver: Bool { isGone }

    var hasRoom: Bool { outgoing.isEmpty }

    /// True if the receive buffer may hold another request.
    var hasMore: Bool {
        guard case .nothing = waiting else { return false }
        return input.isUnread
    }

    var events: Int16 { PollEntry.readable | (outgoing.isEmpty ? 0 : PollEntry.writable) }

    func receive(now: BootInstant) {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = recv(socket.number, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        guard count > 0 else {
            isGone = isGone || count == 0 || (errno != EAGAIN && errno != EINTR)
            return
        }
        lastMoved = now
        input.append(bytes.prefix(count))
        // While it waits for a reply, a client may send one more request, not more.
        if input.count > Self.requestLimit { isGone = true }
    }

    /// Returns the next request, if the one before is answered.
    func nextLine() -> [UInt8]? {
        guard case .nothing = waiting, !isGone, let line = input.next(limit: Self.requestLimit)
        else { return nil }
        guard case .whole(let bytes) = line else {
            isGone = true
            return nil
        }
        return bytes
    }

    func reply(_ line: [UInt8]) {
        outgoing.append(line: line)
        if outgoing.count > Self.replyLimit { isGone = true }
    }

    /// Sends as much as the socket accepts.
    func send(now: BootInstant) {
        switch outgoing.send(on: socket, now: now) {
        case .moved: lastMoved = now
        case .waits: break
        case .refused: isGone = true
        }
    }
}
