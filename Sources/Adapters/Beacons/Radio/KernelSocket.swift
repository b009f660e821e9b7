// The kernel's Bluetooth sockets, and their errors.
import CBlueZ
import CLinux
import Glibc
import Host

/// Opens AF_BLUETOOTH sockets and explains their errors.
enum KernelSocket {
    static let anyAdapter = UInt16(HCI_DEV_NONE)

    /// The channels of a socket (BlueZ, hci(7)).
    enum Channel: UInt16 {
        case raw = 0
        case monitor = 2
        case control = 3
    }

    /// Opens an unbound, non-blocking socket.
    static func open(for name: String) throws -> Descriptor {
        let number = Glibc.socket(
            AF_BLUETOOTH,
            Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
            BTPROTO_HCI
        )
        guard number >= 0 else { throw error("socket", name, errno) }
        return Descriptor(owning: number)
    }

    static func bound(to channel: Channel, for name: String) throws -> Descriptor {
        let socket = try open(for: name)
        guard waypost_hci_bind(socket.number, anyAdapter, channel.rawValue) == 0 else {
            throw error("bind", name, errno)
        }
        return socket
    }

    /// Returns the next packet of a non-blocking descriptor, cut to `size` bytes; nil if none waits.
    static func nextPacket(_ descriptor: Int32, atMost size: Int) -> ArraySlice<UInt8>? {
        var packet = [UInt8](repeating: 0, count: size)
        let count = read(descriptor, &packet, size)
        return count > 0 ? packet[..<count] : nil
    }

    /// Returns the names of the present adapters, such as `hci1`.
    static func adapters() -> [String] {
        guard let socket = try? open(for: "Bluetooth") else { return [] }
        var numbers = [UInt16](repeating: 0, count: 16)
        let count = waypost_hci_adapters(socket.number, &numbers, Int32(numbers.count))
        return numbers.prefix(max(0, Int(count))).sorted().map { "hci\($0)" }
    }

    /// Returns the error of a call, with its remedy.
    static func error(_ call: String, _ name: String, _ code: Int32) -> any Error {
        let reason = String(cString: strerror(code))
        switch code {
        case EPERM, EACCES:
            return Failure(
                "\(name): \(call): \(reason); run it by its service, or give it CAP_NET_RAW and CAP_NET_ADMIN",
                code: .permission
            )
        case ENODEV, EPIPE: return NoAdapterError(name: name)
        case EAFNOSUPPORT:
            return Failure(
                "\(name): this kernel has no Bluetooth (\(reason)); try `modprobe bluetooth`"
            )
        case ERFKILL: return RadioBlockedError(name: name)
        case ENETDOWN: return Failure("\(name): it was switched off; it is switched on again")
        case EADDRNOTAVAIL:
            return Failure(
                "\(name): \(call): the controller has no address; give it one with `btmgmt --index \(name.dropFirst(3)) public-addr ADDRESS`, or static-addr"
            )
        case EBUSY, EUSERS:
            return Failure(
                "\(name): \(call): another program has the adapter to itself; `btmon` shows which"
            )
        default: return Failure("\(name): \(call): \(reason) (errno \(code))")
        }
    }
}

/// The adapter does not exist; `AdapterMonitor` reports when it appears.
struct NoAdapterError: Error, CustomStringConvertible {
    var name: String
    /// The adapters that exist.
    var others: [String] = []

    var description: String {
        let plug = "\(name): no such Bluetooth adapter; plug it in"
        guard !others.isEmpty else { return plug }
        let list = others.joined(separator: ", ")
        return "\(plug), or set beacons.source to one that is there: \(list)"
    }
}

/// rfkill prevents switching the adapter on.
struct RadioBlockedError: Error, CustomStringConvertible {
    var name: String

    var description: String { "\(name): switched off by rfkill; `rfkill unblock bluetooth`" }
}
