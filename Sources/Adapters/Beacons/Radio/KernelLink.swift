// A Bluetooth adapter of this machine, accessed through a raw HCI socket.
import CBlueZ
import CLinux
import Glibc
import Host

/// An HCI link over a raw AF_BLUETOOTH socket.
///
/// Receives every event of the adapter, whichever program caused it. Used by the source's thread
/// only.
final class KernelLink: HCILink {
    /// The requested buffer size.
    ///
    /// The kernel uses about 800 bytes per report, so no packet is lost even if reading stalls for
    /// seconds.
    private static let receiveBuffer: Int32 = 2 << 20

    private let socket: Descriptor
    private let name: String
    private let adapter: Int32?
    private let life: Heartbeat
    /// Bytes that the kernel buffers for us.
    let room: Int
    private var foreignOrder: HCI.ScanOrder?

    /// Switches the adapter on if it is off, and listens to it.
    init(adapter: Int, life: Heartbeat) throws {
        name = "hci\(adapter)"
        let socket = try KernelSocket.open(for: name)
        let number = Int32(adapter)
        try Self.switchOn(socket.number, number, name, life)
        let raw = KernelSocket.Channel.raw.rawValue
        guard waypost_hci_bind(socket.number, UInt16(adapter), raw) == 0 else {
            throw KernelSocket.error("bind", name, errno)
        }
        guard waypost_hci_filter(socket.number) == 0 else {
            throw KernelSocket.error("filter", name, errno)
        }
        // The kernel drops events silently when this is full.
        room = Int(max(0, waypost_set_receive_buffer(socket.number, Self.receiveBuffer)))
        self.adapter = number
        self.socket = socket
        self.life = life
    }

    /// Switches the adapter on; one that is already up is fine.
    private static func switchOn(
        _ socket: Int32,
        _ adapter: Int32,
        _ name: String,
        _ life: Heartbeat
    ) throws {
        let code = life.during("ioctl(HCIDEVUP)") {
            waypost_hci_up(socket, adapter) < 0 ? errno : 0
        }
        guard code == 0 || code == EALREADY else {
            throw KernelSocket.error("bring up", name, code)
        }
    }

    /// Takes ownership of a non-blocking socket that returns one H4 packet per read.
    init(owning descriptor: Int32, name: String) {
        self.name = name
        adapter = nil
        life = Heartbeat()
        room = Int(max(0, waypost_set_receive_buffer(descriptor, Self.receiveBuffer)))
        socket = Descriptor(owning: descriptor)
    }

    var descriptor: Int32 { socket.number }
    let isExclusive = false

    /// Packets that the kernel dropped because the socket's buffer was full.
    ///
    /// The kernel gives no other sign of it. HCI sockets do not support SO_RXQ_OVFL, so this reads
    /// the kernel's drop counter.
    var losses: Int { Self.drops(of: socket.number) }

    /// Returns a socket's drop counter: the last of the nine values of SO_MEMINFO (Linux 4.12).
    static func drops(of socket: Int32) -> Int {
        var figures = [UInt32](repeating: 0, count: 9)
        var size = socklen_t(figures.count * MemoryLayout<UInt32>.stride)
        guard getsockopt(socket, SOL_SOCKET, SO_MEMINFO, &figures, &size) == 0 else { return 0 }
        return Int(figures[8])
    }

    func send(_ command: HCI.Command) throws {
        let packet = command.packet
        let sent = Glibc.send(socket.number, packet, packet.count, Int32(MSG_NOSIGNAL))
        guard sent == packet.count else { throw KernelSocket.error(command.name, name, errno) }
    }

    func receive() throws -> ArraySlice<UInt8>? {
        var packet = [UInt8](repeating: 0, count: 1 + 3 + 255)
        var count = read(socket.number, &packet, packet.count)
        // The kernel shows each raw socket the commands of all others.
        while count > 1, packet[0] == HCI.commandPacket {
            foreignOrder = HCI.ScanOrder(packet[1..<count]) ?? foreignOrder
            count = read(socket.number, &packet, packet.count)
        }
        let code = errno
        if count > 1 { return packet[1..<count] }
        guard count < 0, code == EAGAIN || code == EINTR else {
            throw KernelSocket.error("read", name, count == 0 ? ENODEV : code)
        }
        return nil
    }

    func takeForeignOrder() -> HCI.ScanOrder? {
        defer { foreignOrder = nil }
        return foreignOrder
    }

    /// Another program has a connection through the adapter.
    ///
    /// The adapter therefore works, and a reset would drop the connection.
    var hasConnections: Bool {
        guard let adapter else { return false }
        return waypost_hci_connections(socket.number, UInt16(truncatingIfNeeded: adapter)) > 0
    }

    /// Switches the adapter off and on, which resets the controller; keeps the socket.
    func powerCycle() throws {
        guard let adapter else { return }
        let code = life.during("ioctl(HCIDEVDOWN)") {
            waypost_hci_down(socket.number, adapter) < 0 ? errno : 0
        }
        guard code == 0 else { throw KernelSocket.error("bring down", name, code) }
        try Self.switchOn(socket.number, adapter, name, life)
    }
}
