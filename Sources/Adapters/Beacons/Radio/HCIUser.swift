// Finds other programs that use the kernel's Bluetooth sockets.
import CLinux
import Glibc
import Host

/// A program that has an HCI socket open.
///
/// The kernel reports these programs by name to each new socket of the monitor channel
/// (HCI_MON_CTRL_OPEN, Linux 4.9). This needs neither D-Bus nor access to other users' processes,
/// which the service may not see.
struct HCIUser: Equatable {
    enum Channel: UInt64 {
        case raw = 0
        /// That program has exclusive use of the adapter.
        case user = 1
        case management = 2
    }

    var channel: Channel
    /// The name of the thread that opened the socket, at most 15 bytes.
    var program: String

    var isBluetoothDaemon: Bool { channel == .management && program == "bluetoothd" }

    init(_ channel: Channel, _ program: String) {
        self.channel = channel
        self.program = program
    }

    /// Parses a packet of the monitor; nil for any other.
    init?(_ packet: ArraySlice<UInt8>) {
        var cursor = ByteCursor(packet)
        // Opcode, adapter, length; cookie, format, version, flags, and the name after its length.
        guard cursor.littleEndian(2) == 14, cursor.bytes(4) != nil, cursor.bytes(4) != nil,
            let format = cursor.littleEndian(2), let channel = Channel(rawValue: format),
            cursor.bytes(3 + 4) != nil, let length = cursor.byte(),
            let name = cursor.bytes(Int(length))
        else { return nil }
        self.init(channel, String(decoding: name.prefix { $0 != 0 }, as: UTF8.self))
    }

    /// Returns the current users in other programs; empty if the kernel does not report them.
    static func others() -> [Self] {
        guard let monitor = try? KernelSocket.bound(to: .monitor, for: "Bluetooth") else {
            return []
        }
        let own = threadName
        return all(on: monitor.number).filter { $0.program != own }
    }

    /// Reads the list with which a new monitor socket starts.
    static func all(on descriptor: Int32) -> [Self] {
        var users: [Self] = []
        // On a busy adapter, traffic that is not needed here follows.
        for _ in 0..<1000 {
            guard let packet = KernelSocket.nextPacket(descriptor, atMost: 2048) else { break }
            if let user = Self(packet) { users.append(user) }
        }
        return users
    }

    /// Our own sockets carry the name of the thread that opened them.
    private static var threadName: String {
        var name = [CChar](repeating: 0, count: 16)
        _ = waypost_thread_name(&name)
        return String(
            decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
            as: UTF8.self
        )
    }
}
