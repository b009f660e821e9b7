// A TCP socket that programs on other machines connect to.
import CLinux
import Glibc

/// Owns a listening, non-blocking TCP socket.
package struct TCPListener: ~Copyable, Sendable {
    private let socket: Descriptor

    /// Poll it for clients that want to connect.
    package var descriptor: Int32 { socket.number }

    /// Listens on a numeric address; `::` stands for every IPv4 and IPv6 address.
    ///
    /// Throws a `ConnectError` with the address, of a name too: a name server is not asked.
    package init(_ address: HostPort, waiting: Int32) throws {
        // Before the property: Swift 6.0.3 crashes if a partly initialised owner throws.
        socket = try Self.listening(address, waiting)
    }

    private static func listening(_ address: HostPort, _ waiting: Int32) throws -> Descriptor {
        do {
            return try attempt(address, waiting)
        } catch let error where error.code == EAFNOSUPPORT && address.host == "::" {
            // IPv6 is switched off.
            do {
                return try attempt(HostPort(host: "0.0.0.0", port: address.port), waiting)
            } catch {
                throw ConnectError(place: "\(address)", reason: error.reason(atPort: address.port))
            }
        } catch {
            throw ConnectError(place: "\(address)", reason: error.reason(atPort: address.port))
        }
    }

    private static func attempt(
        _ address: HostPort,
        _ waiting: Int32
    ) throws(SystemError) -> Descriptor {
        let place = "\(address)"
        guard let numeric = NameLookup.numeric(address.host, address.port) else {
            throw SystemError("bind", on: place, code: EADDRNOTAVAIL)
        }
        let flags = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let number = waypost_socket(numeric.family, Int32(flags), 0)
        guard number >= 0 else { throw SystemError.last("socket", on: place) }
        let socket = Descriptor(owning: number)
        var (on, off): (Int32, Int32) = (1, 0)
        let size = socklen_t(MemoryLayout<Int32>.size)
        // Connections of an earlier run may still be in TIME_WAIT.
        setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, size)
        setsockopt(number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, size)
        let code = numeric.withPointer { bind(number, $0, $1) }
        guard code == 0, listen(number, waiting) == 0 else {
            throw SystemError.last("bind", on: place)
        }
        return socket
    }

    /// Whether an address is numeric, so that it can be listened on.
    package static func isNumeric(_ address: HostPort) -> Bool {
        NameLookup.numeric(address.host, address.port) != nil
    }

    /// Accepts the waiting clients as `UnixListener.acceptAll` does.
    package func acceptAll(_ welcome: (Int32) -> Void) -> Bool {
        acceptWaiting(descriptor, welcome)
    }
}

/// Accepts the clients that wait on a listening socket, at most 64.
///
/// Returns false if one cannot be accepted now: the process is out of descriptors (EMFILE) or
/// similar.
func acceptWaiting(_ listener: Int32, _ welcome: (Int32) -> Void) -> Bool {
    for _ in 0..<64 {
        let number = waypost_accept(listener)
        guard number >= 0 else { return [EAGAIN, EINTR, ECONNABORTED].contains(-number) }
        welcome(number)
    }
    return true
}
