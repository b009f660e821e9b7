// Unix sockets: connecting, sending, addresses and timeouts.
import CLinux
import Glibc

/// Functions for Unix sockets by their paths.
package enum UnixSocket {
    /// Connects a stream socket; waits at most `limit` if the listener's backlog is full.
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

    /// Sends one datagram to another program's socket; does nothing if that is not possible now.
    package static func send(_ message: String, to name: [UInt8]) {
        let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return }
        let owner = Descriptor(owning: number)
        // A receiver that does not read must not block the sender.
        limitSending(on: owner.number)
        _ = withAddress(name) { address, length in
            message.withCString { sendto(owner.number, $0, strlen($0), 0, address, length) }
        }
    }

    /// Sets the send timeout: sending or connecting fails after `limit`.
    static func limitSending(on socket: Int32, to limit: Duration = .seconds(1)) {
        let milliseconds = Int(limit.milliseconds)
        var time = timeval(tv_sec: milliseconds / 1000, tv_usec: milliseconds % 1000 * 1000)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Calls `body` with the address of a path; returns nil if the path is too long.
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
