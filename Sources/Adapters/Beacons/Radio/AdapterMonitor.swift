// Monitors the kernel's adapters: plugged in, removed, switched on or off.
import CBlueZ
import Glibc
import Host

/// A change of an adapter (HCI_EV_STACK_INTERNAL of the kernel's net/bluetooth/hci.h).
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

    /// Parses an adapter event; returns nil for any other packet.
    init?(_ packet: ArraySlice<UInt8>) {
        var cursor = ByteCursor(packet)
        // A stack-internal event (0xFD) about a device (1), in the machine's byte order.
        guard cursor.byte() == HCI.eventPacket, cursor.byte() == 0xFD, cursor.byte() != nil,
            cursor.littleEndian(2) == 1, let event = cursor.littleEndian(2),
            let kind = Kind(rawValue: UInt16(truncatingIfNeeded: event)),
            let adapter = cursor.littleEndian(2)
        else { return nil }
        self.init(kind, Int(adapter))
    }
}

/// Reports when adapters come and go, without polling.
final class AdapterMonitor {
    private let socket: Descriptor

    init() throws {
        let socket = try KernelSocket.bound(to: .raw, for: "Bluetooth")
        guard waypost_hci_filter_adapters(socket.number) == 0 else {
            throw KernelSocket.error("filter", "Bluetooth", errno)
        }
        self.socket = socket
    }

    /// Takes ownership of a non-blocking socket that returns one packet per read.
    init(owning descriptor: Int32) {
        socket = Descriptor(owning: descriptor)
    }

    var descriptor: Int32 { socket.number }

    /// Returns the changes since the last call; does not block.
    func changes() -> [AdapterChange] {
        var changes: [AdapterChange] = []
        while let packet = KernelSocket.nextPacket(descriptor, atMost: 1 + 2 + 255) {
            if let change = AdapterChange(packet) { changes.append(change) }
        }
        return changes
    }
}
