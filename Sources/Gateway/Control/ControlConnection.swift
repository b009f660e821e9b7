// A client that is connected to the control socket, from the server's side.
import CLinux
import Glibc
import Host

/// Requests come in, replies go out; neither ever waits, and what waits of either is bounded.
///
/// Belongs to the thread of the server.
final class ControlConnection {
    /// Bytes of a request, and of replies that are not read.
    private static let requestLimit = 4096
    private static let replyLimit = 4 << 20

    /// What its last request waits for; no other is read before.
    indirect enum Waiting {
        case nothing
        /// Work on another thread.
        case work
        /// A publication of the status with this number or a later one, which the reply is sent with; from the deadline
        /// on, the newest one that there is. nil: a reply with nothing else in it.
        case status(ControlReply?, number: Int, deadline: BootInstant)
    }

    /// Never used again, unlike the number of a descriptor.
    let id: Int
    /// Who connected.
    let user: UInt32
    let socket: Descriptor
    var waiting = Waiting.nothing
    /// Wants the status after each change.
    var isWatching = false
    private var input = LineBuffer()
    private var outgoing = OutgoingBytes()
    private(set) var lastMoved: BootInstant
    /// Since when it has read none of the replies that wait.
    var stalledSince: BootInstant? { outgoing.stalledSince }
    private var isGone = false

    init(_ number: Int32, id: Int, now: BootInstant) {
        socket = Descriptor(owning: number)
        user = waypost_peer_user(number)
        self.id = id
        lastMoved = now
    }

    /// Neither asks nor watches.
    var isIdle: Bool {
        guard case .nothing = waiting else { return false }
        return !isWatching && outgoing.isEmpty
    }

    /// Its program went away, or sends what is no request.
    var isOver: Bool { isGone }

    var hasRoom: Bool { outgoing.isEmpty }

    /// There may be another request in what was received.
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
        // One that sends more while it waits for a reply has room for one more request; beyond that it is cut off.
        if input.count > Self.requestLimit { isGone = true }
    }

    /// The next request, if the one before is answered.
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

    /// Sends what there is, as far as the client takes it.
    func send(now: BootInstant) {
        switch outgoing.send(on: socket, now: now) {
        case .moved: lastMoved = now
        case .waits: break
        case .refused: isGone = true
        }
    }
}
