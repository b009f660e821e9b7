// A snapshot of this machine's network; `NetworkSocket` compares two to detect a change.
import CLinux
import Glibc
import Host

/// The links that carry traffic and the addresses in use.
///
/// If they change, a failed upload may succeed.
///
/// Wi-Fi scans, counters, router advertisements and loopback do not change this value.
struct NetworkState: Sendable, Equatable {
    /// IFF_UP, IFF_RUNNING and IFF_LOWER_UP: the flags of a link that carries traffic.
    private static let carrying: UInt32 = 0x1 | 0x40 | 0x10000
    private static let loopback: UInt32 = 0x8
    /// Flags of an address in duplicate address detection (IFA_F_TENTATIVE) or that failed it
    /// (IFA_F_DADFAILED).
    private static let unusable: UInt32 = 0x40 | 0x08

    /// The flags of `carrying` that are set, by interface.
    private var links: [String: UInt32] = [:]
    private var addresses: Set<String> = []

    /// Reads the present state, in the network namespace of the calling thread; nil if that fails.
    ///
    /// Blocks while a hung driver holds the kernel's lock on interfaces.
    static func current() -> Self? {
        var state = Self()
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return nil }
        defer { freeifaddrs(first) }
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let name = entry.ifa_name else { continue }
            var ipv4: UInt32?
            if let address = entry.ifa_addr, Int32(address.pointee.sa_family) == AF_INET {
                ipv4 = UnsafeRawPointer(address).load(as: sockaddr_in.self).sin_addr.s_addr
            }
            state.add(String(cString: name), flags: entry.ifa_flags, ipv4: ipv4)
        }
        // getifaddrs(3) does not say which addresses may be used.
        state.add(ipv6: SmallText.read("/proc/thread-self/net/if_inet6") ?? "")
        return state
    }

    /// Adds an interface and one of its addresses, if it has one.
    mutating func add(_ name: String, flags: UInt32, ipv4: UInt32? = nil) {
        guard flags & Self.loopback == 0 else { return }
        links[name] = flags & Self.carrying
        if let ipv4 { addresses.insert("\(name) \(ipv4)") }
    }

    /// Adds the lines of `if_inet6`: address, index, prefix, scope and flags in hexadecimal, name.
    ///
    /// Skips lines of interfaces that were not added before.
    mutating func add(ipv6 table: String) {
        for line in table.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count == 6, let flags = UInt32(fields[4], radix: 16),
                flags & Self.unusable == 0, links[String(fields[5])] != nil
            else { continue }
            addresses.insert("\(fields[5]) \(fields[0])")
        }
    }
}
