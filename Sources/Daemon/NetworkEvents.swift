// The kernel's messages about interfaces and addresses (rtnetlink(7)), and which are changes.

/// A change of an interface or address that a kernel message reports.
enum NetworkEvent: Sendable, Equatable {
    /// The interface's flags (netdevice(7)); nil if it was removed.
    case link(index: Int32, flags: UInt32?)
    /// An address of the interface; not `isUsable` if it was removed or may not be used yet.
    case address(index: Int32, bytes: [UInt8], isUsable: Bool)
}

/// Parses rtnetlink messages; accepts any bytes.
enum NetlinkMessages {
    private enum Kind {
        static let newLink: UInt16 = 16
        static let deleteLink: UInt16 = 17
        static let newAddress: UInt16 = 20
        static let deleteAddress: UInt16 = 21
    }

    private enum Attribute {
        static let address: UInt16 = 1
        static let local: UInt16 = 2
        static let flags: UInt16 = 8
    }

    /// Sizes in bytes of a message's header, `ifinfomsg` and `ifaddrmsg`.
    private static let header = 16
    private static let linkPart = 16
    private static let addressPart = 8
    /// Flags of an address in duplicate address detection (IFA_F_TENTATIVE) or that failed it
    /// (IFA_F_DADFAILED).
    private static let unusable: UInt32 = 0x40 | 0x08

    /// Returns the events in the bytes of one read; parsing ends at a truncated message.
    static func events(_ bytes: [UInt8]) -> [NetworkEvent] {
        var events: [NetworkEvent] = []
        var rest = bytes[...]
        while let length = rest.number32(at: 0).map({ Int($0) }), length >= header,
            length <= rest.count, let kind = rest.number16(at: 4)
        {
            let body = rest.dropFirst(header).prefix(length - header)
            if let event = event(kind, body) { events.append(event) }
            rest = rest.dropFirst((length + 3) & ~3)
        }
        return events
    }

    private static func event(_ kind: UInt16, _ body: ArraySlice<UInt8>) -> NetworkEvent? {
        guard let index = body.number32(at: 4).map({ Int32(bitPattern: $0) }) else { return nil }
        switch kind {
        case Kind.newLink:
            guard body.count >= linkPart, let flags = body.number32(at: 8) else { return nil }
            return .link(index: index, flags: flags)
        case Kind.deleteLink:
            return body.count >= linkPart ? .link(index: index, flags: nil) : nil
        case Kind.newAddress, Kind.deleteAddress:
            guard body.count >= addressPart else { return nil }
            return address(body, index, isNew: kind == Kind.newAddress)
        default:
            return nil
        }
    }

    private static func address(
        _ body: ArraySlice<UInt8>,
        _ index: Int32,
        isNew: Bool
    ) -> NetworkEvent? {
        var flags = body.number8(at: 2).map { UInt32($0) } ?? 0
        var address: ArraySlice<UInt8> = []
        var rest = body.dropFirst(addressPart)
        while let length = rest.number16(at: 0).map({ Int($0) }), length >= 4,
            length <= rest.count, let type = rest.number16(at: 2)
        {
            let value = rest.dropFirst(4).prefix(length - 4)
            switch type {
            // On a point-to-point link this is the peer's address; the attribute `local` has ours.
            case Attribute.address where address.isEmpty: address = value
            case Attribute.local: address = value
            case Attribute.flags: flags = value.number32(at: 0) ?? flags
            default: break
            }
            rest = rest.dropFirst((length + 3) & ~3)
        }
        guard !address.isEmpty, address.count <= 16 else { return nil }
        let isUsable = isNew && flags & unusable == 0
        return .address(index: index, bytes: Array(address), isUsable: isUsable)
    }
}

/// Decides which events may change the route to a server.
///
/// The kernel repeats messages: network scans, router advertisements and counters are not changes.
struct NetworkMemory: Sendable {
    private struct Address: Hashable {
        var index: Int32
        var bytes: [UInt8]
    }

    /// The most interfaces and addresses that are remembered; beyond it all are forgotten.
    private static let limit = 4096
    /// IFF_UP, IFF_RUNNING and IFF_LOWER_UP: the flags of a link that carries traffic.
    private static let carrying: UInt32 = 0x1 | 0x40 | 0x10000
    private static let loopback: UInt32 = 0x8

    private var links: [Int32: UInt32] = [:]
    private var loopbacks: Set<Int32> = []
    private var addresses: Set<Address> = []

    /// Remembers an event; returns true if it is a change.
    mutating func notes(_ event: NetworkEvent) -> Bool {
        if links.count + loopbacks.count + addresses.count >= Self.limit { self = Self() }
        switch event {
        case .link(let index, let flags?):
            guard flags & Self.loopback == 0 else {
                loopbacks.insert(index)
                return false
            }
            return links.updateValue(flags & Self.carrying, forKey: index)
                != flags & Self.carrying
        case .link(let index, nil):
            addresses = addresses.filter { $0.index != index }
            return loopbacks.remove(index) == nil && links.removeValue(forKey: index) != nil
        case .address(let index, let bytes, let isUsable):
            guard !Self.isLoopback(bytes) else { return false }
            let address = Address(index: index, bytes: bytes)
            return isUsable
                ? addresses.insert(address).inserted : addresses.remove(address) != nil
        }
    }

    private static func isLoopback(_ bytes: [UInt8]) -> Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 }
    }
}

/// Merges changes in quick succession: links flap, and one change causes several messages.
struct Debounce: Sendable {
    /// The quiet time in ms after which a change is reported.
    static let quiet = 1_500
    /// The time in ms after which a change that goes on is reported.
    static let limit = 5_000
    /// The least time in ms between two reports.
    static let gap = 15_000

    private var first: Int64?
    private var last: Int64 = 0
    private var toldAt: Int64?

    /// Records a change at `now`, in ms of boot time.
    mutating func changed(at now: Int64) {
        if first == nil { first = now }
        last = now
    }

    /// When the change is to be reported, in ms of boot time; nil without a change.
    var due: Int64? {
        guard let first else { return nil }
        let settled = min(last + Int64(Self.quiet), first + Int64(Self.limit))
        return max(settled, toldAt.map { $0 + Int64(Self.gap) } ?? .min)
    }

    /// Returns true once when a change is due.
    mutating func isOver(at now: Int64) -> Bool {
        guard let due, now >= due else { return false }
        first = nil
        toldAt = now
        return true
    }
}

extension ArraySlice<UInt8> {
    /// Reads a number in host byte order, as the kernel writes it; returns nil beyond the end.
    fileprivate func number8(at offset: Int) -> UInt8? { number(at: offset, 1) { $0[0] } }

    fileprivate func number16(at offset: Int) -> UInt16? {
        number(at: offset, 2) { $0.loadUnaligned(as: UInt16.self) }
    }

    fileprivate func number32(at offset: Int) -> UInt32? {
        number(at: offset, 4) { $0.loadUnaligned(as: UInt32.self) }
    }

    private func number<Value>(
        at offset: Int,
        _ size: Int,
        _ read: (UnsafeRawBufferPointer) -> Value
    ) -> Value? {
        guard offset >= 0, offset + size <= count else { return nil }
        let bytes = self[(startIndex + offset)..<(startIndex + offset + size)]
        return bytes.withUnsafeBytes { read($0) }
    }
}
