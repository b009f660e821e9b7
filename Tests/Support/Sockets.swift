// Local sockets that tests listen on.
internal import CLinux
internal import Glibc

/// Returns a bound socket on a loopback port that the kernel chose; a stream socket listens.
package func listening(
    datagrams: Bool = false,
    backlog: Int32 = 8
) -> (socket: Int32, port: UInt16) {
    let type = datagrams ? SOCK_DGRAM : SOCK_STREAM
    let number = socket(AF_INET, Int32(type.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = bind(number, $0, length)
            if !datagrams { _ = listen(number, backlog) }
            _ = getsockname(number, $0, &length)
        }
    }
    return (number, UInt16(bigEndian: address.sin_port))
}

/// Returns a port that nobody listens on now.
package func freePort(datagrams: Bool = false) -> UInt16 {
    let (number, port) = listening(datagrams: datagrams)
    close(number)
    return port
}
