// Local sockets that tests listen on.
internal import CLinux
internal import Glibc

/// Returns a bound socket on a loopback port that the kernel chose; a stream socket listens.
package func listening(
    datagrams: Bool = false,
    backlog: Int32 = 8
) -> (socket: Int32, port: UInt16) {
    // Port 0, the kernel's choice, is always free.
    bound(to: 0, datagrams: datagrams, backlog: backlog) ?? (-1, 0)
}

private func bound(
    to port: UInt16,
    datagrams: Bool,
    backlog: Int32
) -> (socket: Int32, port: UInt16)? {
    let type = datagrams ? SOCK_DGRAM : SOCK_STREAM
    let number = socket(AF_INET, Int32(type.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = port.bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(number, $0, length) == 0 && (datagrams || listen(number, backlog) == 0)
                && getsockname(number, $0, &length) == 0
        }
    }
    guard isBound else {
        close(number)
        return nil
    }
    return (number, UInt16(bigEndian: address.sin_port))
}

/// The next port to offer, below those the kernel gives to outgoing connections: one of those
/// could be taken by another test before it is listened on.
private let offered = Locked(UInt16.random(in: 20_000..<32_000))

/// Returns a port that nobody listens on now, and that no other test of this process was given.
package func freePort(datagrams: Bool = false) -> UInt16 {
    while true {
        let port = offered.update { next in
            defer { next = next == 31_999 ? 20_000 : next + 1 }
            return next
        }
        guard let (number, _) = bound(to: port, datagrams: datagrams, backlog: 8) else { continue }
        close(number)
        return port
    }
}
