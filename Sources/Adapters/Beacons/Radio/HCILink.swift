// One interface to a controller, whatever it is connected by.
import CLinux
import Glibc
import Host

/// A controller that takes commands and gives events.
protocol HCILink: AnyObject {
    /// Readable when `receive` may have something.
    var descriptor: Int32 { get }
    /// The controller is ours alone: it may be reset, and its event masks are ours to set.
    var isExclusive: Bool { get }
    func send(_ command: HCI.Command) throws
    /// The next event, from its event code on; nil when none is there now. Throws when the link is lost.
    func receive() throws -> ArraySlice<UInt8>?
    /// Packets lost since the link was made: not fetched in time, or not whole.
    var losses: Int { get }
    /// A reset would cost others their connections.
    var hasConnections: Bool { get }
    /// The last order to the scan by another program or the kernel since this was asked before.
    func takeForeignOrder() -> HCI.ScanOrder?
}

/// H4 (Core Specification, Vol 4, Part A) over TCP: a controller in another process or on another machine.
final class H4Link: HCILink {
    private let socket: Descriptor
    private let name: String
    private var buffer: [UInt8] = []
    /// Where the first packet that is not taken yet begins in `buffer`.
    private var start = 0

    /// Connects; waits at most 5 s, less if `stop` is raised.
    init(host: String, port: UInt16, until stop: StopSignal) throws {
        name = "h4:\(host):\(port)"
        socket = try TCP.connect(host: host, port: port, until: stop)
    }

    /// Talks over a connected socket; takes it over.
    init(owning descriptor: Int32, name: String) {
        socket = Descriptor(owning: descriptor)
        self.name = name
    }

    var descriptor: Int32 { socket.number }
    let isExclusive = true
    /// Runs of bytes that were no packet, and a packet that the end of the connection cut off.
    private(set) var losses = 0
    /// Looking for the next packet.
    private var isAstray = false

    let hasConnections = false

    /// Nobody else can reach it.
    func takeForeignOrder() -> HCI.ScanOrder? { nil }

    func send(_ command: HCI.Command) throws {
        let packet = command.packet
        let sent = Glibc.send(socket.number, packet, packet.count, Int32(MSG_NOSIGNAL))
        guard sent == packet.count else { throw SystemError.last("send", on: name) }
    }

    func receive() throws -> ArraySlice<UInt8>? {
        if let event = nextEvent() { return event }
        buffer.removeFirst(start)
        start = 0
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = recv(socket.number, &chunk, chunk.count, Int32(MSG_DONTWAIT))
        let code = errno
        if count > 0 {
            buffer.append(contentsOf: chunk.prefix(count))
            return nextEvent()
        }
        guard count < 0, code == EAGAIN || code == EINTR else {
            if !buffer.isEmpty { losses += 1 }
            buffer.removeAll()
            throw Failure(
                "\(name): "
                    + (count == 0
                        ? "the controller closed the connection"
                        : "\(SystemError("recv", code: code))")
            )
        }
        return nil
    }

    /// Takes whole packets from the buffer; what is no event is passed over.
    private func nextEvent() -> ArraySlice<UInt8>? {
        while start < buffer.count {
            let rest = buffer[start...]
            guard let size = Self.size(rest) else {
                // Not a packet type of H4: there is no way to find the next packet but to look on.
                start += 1
                if !isAstray { losses += 1 }
                isAstray = true
                continue
            }
            isAstray = false
            guard size.header <= rest.count, size.total <= rest.count else { return nil }
            start += size.total
            if rest.first == HCI.eventPacket { return rest.dropFirst().prefix(size.total - 1) }
        }
        return nil
    }

    /// Header and total length of a packet; the total is over-long while the header is not all there.
    private static func size(_ rest: ArraySlice<UInt8>) -> (header: Int, total: Int)? {
        let bytes = Array(rest.prefix(5))
        switch bytes.first {
        case HCI.eventPacket: return (3, bytes.count < 3 ? .max : 3 + Int(bytes[2]))
        case 3: return (4, bytes.count < 4 ? .max : 4 + Int(bytes[3]))
        case 2, 5:
            return (5, bytes.count < 5 ? .max : 5 + Int(bytes[3]) + Int(bytes[4]) << 8)
        default: return nil
        }
    }
}
