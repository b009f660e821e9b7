// One connected client of the proxy: its socket, its session and its deadlines.
import CLinux
import Glibc
import Host
import Records

/// A client's connection; used by the proxy's thread only.
final class ProxyClient {
    /// Above this nothing is read or added: what a client does not take waits in the tap, where it
    /// is dropped in time.
    private static let outgoingLimit = 32 << 10
    /// Bytes that the kernel buffers for a client, doubled by it; by default it would be megabytes.
    private static let kernelBuffer: Int32 = 64 << 10

    let session: APISession
    /// The address, for messages.
    let address: String
    private let socket: Descriptor
    private let limits: ProxyLimits
    private let connected: BootInstant
    private(set) var heard: BootInstant
    private var leaves: BootInstant?
    /// When the client is disconnected if it has not answered: another one needs its place.
    private var answersBy: BootInstant?
    private var hasPinged = false
    private(set) var isOver = false
    /// The number of the next advertisement; nil while the client wants none.
    var next: UInt64?

    init(_ number: Int32, _ session: APISession, _ limits: ProxyLimits, now: BootInstant) {
        socket = Descriptor(owning: number)
        (self.session, self.limits) = (session, limits)
        (connected, heard) = (now, now)
        address = peerAddress(number)
        var (on, size) = (Int32(1), Self.kernelBuffer)
        let length = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &on, length)
        setsockopt(number, SOL_SOCKET, SO_SNDBUF, &size, length)
    }

    private var isFull: Bool { session.outgoing.count >= Self.outgoingLimit }
    /// A client that takes nothing gets no answers either; a slow one goes on being read.
    private var isStuffed: Bool { session.outgoing.count >= 3 * Self.outgoingLimit }

    /// Whether advertisements can be added for it now.
    var wantsAdvertisements: Bool { next != nil && session.stage == .ready && !isFull && !isOver }

    var entry: PollEntry {
        let writes = session.outgoing.isEmpty ? 0 : PollEntry.writable
        return PollEntry(socket.number, (isStuffed ? 0 : PollEntry.readable) | writes)
    }

    /// Reads once, if there is something to read; `tap` gives the number of the next advertisement.
    func receive(_ entry: PollEntry, _ tap: AdvertisementTap, now: BootInstant) {
        guard entry.result & ~PollEntry.writable != 0 else { return }
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            let count = recv(socket.number, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            let code = errno
            if count > 0 {
                (heard, answersBy) = (now, nil)
                hasPinged = false
                session.receive(buffer[..<count])
            } else if count == 0 || (code != EAGAIN && code != EINTR) {
                isOver = true
            }
        }
        if !session.isSubscribed { next = nil } else if next == nil { next = tap.end }
    }

    /// Sends as much as the socket takes, and closes our half after the last byte.
    func flush(now: BootInstant) {
        if !session.outgoing.isEmpty {
            let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
            let bytes = session.outgoing
            let count = send(socket.number, bytes, bytes.count, flags)
            let code = errno
            if count > 0 { session.outgoing.removeFirst(count) }
            if count < 0, code != EAGAIN, code != EINTR { isOver = true }
        }
        guard session.stage == .leaving else { return }
        // The client reads to the end and closes; a close of ours could destroy what it has not
        // read yet.
        if session.outgoing.isEmpty { shutdown(socket.number, Int32(SHUT_WR)) }
    }

    /// The time of the next action that nobody else causes.
    var deadline: BootInstant {
        if let leaves { return leaves }
        if !session.isTrusted { return connected + limits.handshake }
        let limit = heard + (hasPinged ? limits.silence : limits.idle)
        return answersBy.map { min($0, limit) } ?? limit
    }

    /// Asks for a sign at once, because another client needs the place.
    func press(now: BootInstant) {
        guard answersBy == nil else { return }
        (answersBy, hasPinged) = (now + limits.answer, true)
        session.ping()
    }

    /// Acts on a deadline that has passed; returns why the client is disconnected, if it is for a
    /// fault.
    func check(now: BootInstant) -> String? {
        // From here on the other deadlines no longer count.
        if session.stage == .leaving, leaves == nil { leaves = now + limits.farewell }
        guard deadline <= now else { return nil }
        if leaves == nil, session.isTrusted, !hasPinged {
            hasPinged = true
            session.ping()
            return nil
        }
        isOver = true
        if leaves != nil { return nil }
        return session.isTrusted
            ? "a client did not answer" : "a client did not finish its handshake"
    }
}

/// The address of the other end of a socket.
private func peerAddress(_ socket: Int32) -> String {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var name = [CChar](repeating: 0, count: 64)
    let isKnown = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            getpeername(socket, $0, &length) == 0
                && getnameinfo($0, length, &name, 64, nil, 0, NI_NUMERICHOST) == 0
        }
    }
    let text = String(
        decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
        as: UTF8.self
    )
    // An IPv4 client of a socket for both.
    return !isKnown ? "unknown" : text.hasPrefix("::ffff:") ? String(text.dropFirst(7)) : text
}
