// One interface to a controller, whatever it is connected by.
internal import Board
internal import CBlueZ
internal import CLinux
internal import Glibc
internal import Host

/// A controller that takes commands and gives events.
protocol HCILink: AnyObject {
    /// Readable when `receive` may have something.
    var descriptor: Int32 { get }
    /// The controller is ours alone: it may be reset, and its event masks are ours to set.
    var isExclusive: Bool { get }
    func send(_ command: HCI.Command) throws
    /// The next event, from its event code on; nil when none is there now. Throws when the link is lost.
    func receive() throws -> ArraySlice<UInt8>?
    /// Events lost since the link was made because they were not fetched in time.
    var overruns: Int { get }
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
    /// TCP holds the controller back instead.
    let overruns = 0

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
                continue
            }
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

/// A Bluetooth adapter of this machine, through a raw HCI socket of the kernel.
final class KernelLink: HCILink {
    private let socket: Descriptor
    private let name: String

    init(adapter: Int) throws {
        name = "hci\(adapter)"
        let number = Glibc.socket(
            AF_BLUETOOTH,
            Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
            BTPROTO_HCI
        )
        guard number >= 0 else { throw Self.failure("socket", name, errno) }
        socket = Descriptor(owning: number)
        // Already up is what is wanted.
        if waypost_hci_up(number, Int32(adapter)) < 0, errno != EALREADY {
            throw Self.failure("bring up", name, errno)
        }
        guard waypost_hci_bind(number, UInt16(adapter)) == 0 else {
            throw Self.failure("bind", name, errno)
        }
        guard waypost_hci_filter(number) == 0 else { throw Self.failure("filter", name, errno) }
        // The kernel drops events silently when this is full: room for seconds of a stalled reader.
        _ = waypost_set_receive_buffer(number, 1 << 20)
    }

    /// Talks over a socket that gives one H4 packet a read and does not block; takes it over.
    init(owning descriptor: Int32, name: String) {
        socket = Descriptor(owning: descriptor)
        self.name = name
    }

    var descriptor: Int32 { socket.number }
    let isExclusive = false

    /// What the kernel dropped because the socket's buffer was full; it says so nowhere else.
    var overruns: Int { Self.drops(of: socket.number) }

    /// The drop counter of a socket, the last of the nine figures of SO_MEMINFO (Linux 4.12).
    static func drops(of socket: Int32) -> Int {
        var figures = [UInt32](repeating: 0, count: 9)
        var size = socklen_t(figures.count * MemoryLayout<UInt32>.stride)
        guard getsockopt(socket, SOL_SOCKET, SO_MEMINFO, &figures, &size) == 0 else { return 0 }
        return Int(figures[8])
    }

    func send(_ command: HCI.Command) throws {
        let packet = command.packet
        let sent = Glibc.send(socket.number, packet, packet.count, Int32(MSG_NOSIGNAL))
        guard sent == packet.count else {
            throw Self.failure(command.name, name, errno)
        }
    }

    func receive() throws -> ArraySlice<UInt8>? {
        var packet = [UInt8](repeating: 0, count: 1 + 2 + 255)
        let count = read(socket.number, &packet, packet.count)
        let code = errno
        if count > 1 { return packet[1..<count] }
        guard count < 0, code == EAGAIN || code == EINTR else {
            throw Self.failure("read", name, count == 0 ? ENODEV : code)
        }
        return nil
    }

    private static func failure(_ call: String, _ name: String, _ code: Int32) -> Failure {
        let reason = String(cString: strerror(code))
        switch code {
        case EPERM, EACCES:
            return Failure(
                "\(name): \(call): \(reason); run it by its service, or give it CAP_NET_RAW and CAP_NET_ADMIN",
                code: .permission
            )
        case ENODEV:
            return Failure("\(name): no such Bluetooth adapter; `hciconfig -a` lists what is there")
        case EAFNOSUPPORT:
            return Failure("\(name): this kernel has no Bluetooth (\(reason))")
        case ERFKILL:
            return Failure("\(name): switched off by rfkill; `rfkill unblock bluetooth`")
        default:
            return Failure("\(name): \(call): \(reason) (errno \(code))")
        }
    }
}
