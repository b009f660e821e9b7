// The interface to a Bluetooth controller (HCI), and its H4 transport over TCP.
import CBlueZ  // MSG_NOSIGNAL: the first module that includes sys/socket.h has it
import CLinux
import Glibc
import Host

/// A controller that accepts commands and sends events.
protocol HCILink: AnyObject {
    /// Readable when `receive` may have something.
    var descriptor: Int32 { get }
    /// Whether no other program uses the controller, so that we may reset it and set its event
    /// masks.
    var isExclusive: Bool { get }
    func send(_ command: HCI.Command) throws
    /// Returns the next event, from its event code on; nil if none has arrived. Throws when the
    /// link is lost.
    func receive() throws -> ArraySlice<UInt8>?
    /// Packets lost since the link was opened: not read in time, or incomplete.
    var losses: Int { get }
    /// True if other programs have connections, which a reset would drop.
    var hasConnections: Bool { get }
    /// Returns and clears the last scan command of another program or the kernel.
    func takeForeignOrder() -> HCI.ScanOrder?
}

/// H4 over TCP (Core Specification, Vol 4, Part A): a controller in another process or machine.
final class H4Link: HCILink {
    private let socket: Descriptor
    private let name: String
    private var buffer: [UInt8] = []
    /// The index in `buffer` of the first unread packet.
    private var start = 0

    /// Connects; waits at most 5 s, or until `stop` is raised.
    init(host: String, port: UInt16, until stop: StopSignal) throws {
        name = "h4:\(host):\(port)"
        socket = try TCP.connect(host: host, port: port, until: stop)
    }

    /// Takes ownership of a connected socket.
    init(owning descriptor: Int32, name: String) {
        socket = Descriptor(owning: descriptor)
        self.name = name
    }

    var descriptor: Int32 { socket.number }
    let isExclusive = true
    /// Counts runs of bytes that were not a packet, and a packet cut off by the end of the
    /// connection.
    private(set) var losses = 0
    /// Out of sync: searching for the next packet.
    private var isAstray = false

    let hasConnections = false

    /// Always nil: no other program can reach the controller.
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

    /// Returns the next event in the buffer; skips other packets.
    private func nextEvent() -> ArraySlice<UInt8>? {
        while start < buffer.count {
            let rest = buffer[start...]
            guard let size = Self.size(rest) else {
                // Not an H4 packet type; the next packet can only be found by searching on.
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

    /// Returns header and total length of a packet; the total is `.max` until the header is
    /// complete.
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
