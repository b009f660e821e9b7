// Addresses and time limits of Unix sockets.
import CLinux
import Glibc

/// Unix sockets by their paths.
package enum UnixSocket {
    /// A stream connection; waits no longer than `limit` where as many programs wait already as there is room for.
    package static func connect(
        to path: String,
        within limit: Duration = .seconds(1)
    ) throws(SystemError) -> Descriptor {
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let number = socket(AF_UNIX, flags, 0)
        guard number >= 0 else { throw SystemError.last("socket", on: path) }
        let owner = Descriptor(owning: number)
        limitSending(on: number, to: limit)
        let code = withAddress(Array(path.utf8)) { Glibc.connect(number, $0, $1) }
        guard let code else { throw SystemError("connect", on: path, code: ENAMETOOLONG) }
        guard code == 0 else { throw SystemError.last("connect", on: path) }
        return owner
    }

    /// Sends one datagram to a socket that another program reads; does nothing where that is not possible now.
    package static func send(_ message: String, to name: [UInt8]) {
        let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return }
        let owner = Descriptor(owning: number)
        // A program that does not read must not hold up the one that reports to it.
        limitSending(on: owner.number)
        _ = withAddress(name) { address, length in
            message.withCString { sendto(owner.number, $0, strlen($0), 0, address, length) }
        }
    }

    /// Whatever is sent, or connected, fails after `limit` if the other side takes nothing.
    static func limitSending(on socket: Int32, to limit: Duration = .seconds(1)) {
        let milliseconds = Int(limit.milliseconds)
        var time = timeval(tv_sec: milliseconds / 1000, tv_usec: milliseconds % 1000 * 1000)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Calls `body` with the address of a path; nil where it is too long.
    static func withAddress<Result>(
        _ path: [UInt8],
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}
