// What the kernel tells of its adapters: plugged in, taken away, switched on and off.
import CBlueZ
import Glibc
import Host

/// Something that happened to an adapter (HCI_EV_STACK_INTERNAL of the kernel's net/bluetooth/hci.h).
struct AdapterChange: Equatable {
    enum Kind: UInt16 {
        case added = 1
        case removed = 2
        case up = 3
        case down = 4
    }

    var kind: Kind
    var adapter: Int

    init(_ kind: Kind, _ adapter: Int) {
        self.kind = kind
        self.adapter = adapter
    }

    /// nil for any other packet.
    init?(_ packet: ArraySlice<UInt8>) {
        var cursor = ByteCursor(packet)
        // An event of the stack itself (0xFD), about a device (1); in the byte order of the machine.
        guard cursor.byte() == HCI.eventPacket, cursor.byte() == 0xFD, cursor.byte() != nil,
            cursor.littleEndian(2) == 1, let event = cursor.littleEndian(2),
            let kind = Kind(rawValue: UInt16(truncatingIfNeeded: event)),
            let adapter = cursor.littleEndian(2)
        else { return nil }
        self.init(kind, Int(adapter))
    }
}

/// Waits for adapters to come and go without looking for them again and again.
final class AdapterMonitor {
    private let socket: Descriptor

    init() throws {
        let socket = try KernelSocket.bound(to: .raw, for: "Bluetooth")
        guard waypost_hci_filter_adapters(socket.number) == 0 else {
            throw KernelSocket.error("filter", "Bluetooth", errno)
        }
        self.socket = socket
    }

    /// Listens on a socket that gives one packet a read and does not block; takes it over.
    init(owning descriptor: Int32) {
        socket = Descriptor(owning: descriptor)
    }

    var descriptor: Int32 { socket.number }

    /// What has happened since it was asked last.
    func changes() -> [AdapterChange] {
        var changes: [AdapterChange] = []
        var packet = [UInt8](repeating: 0, count: 1 + 2 + 255)
        while true {
            let count = read(socket.number, &packet, packet.count)
            guard count > 0 else { return changes }
            if let change = AdapterChange(packet[..<count]) { changes.append(change) }
        }
    }
}
