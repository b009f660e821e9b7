// The address that the receiver listens on.
import Glibc
import Host

/// An IPv4 address and a port.
struct ListenAddress {
    /// Connections that wait in the kernel while all are in use.
    private static let backlog: Int32 = 256

    private var address = sockaddr_in()
    private let host: String
    private let written: String

    init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { return nil }
        host = text[..<colon] == "localhost" ? "127.0.0.1" : String(text[..<colon])
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        written = text
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return nil }
    }

    /// True if a server accepts connections there.
    var isAnswered: Bool {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(number) }
        return withAddress { connect(number, $0, $1) == 0 }
    }

    private func withAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Only programs on this machine reach it.
    var isLoopback: Bool { host.hasPrefix("127.") }

    /// Returns a listening socket; `key` names the option and the key that set this address.
    func listen(_ key: String) throws -> Int32 {
        let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let number = socket(AF_INET, Int32(kind), 0)
        guard number >= 0 else { throw SystemError.last("socket", on: written) }
        var yes: Int32 = 1
        setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let isBound = withAddress { bind(number, $0, $1) == 0 }
        guard isBound, Glibc.listen(number, Self.backlog) == 0 else {
            let error = SystemError.last("bind", on: written)
            close(number)
            let reason = error.reason(atPort: UInt16(bigEndian: address.sin_port))
            throw Failure(
                "cannot listen on \(written): \(reason); --\(key) or the key \(key) sets another"
            )
        }
        return number
    }

    /// Returns the address of its listening socket, as `127.0.0.1:8080`.
    func text(of socket: Int32) throws -> String {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
        }
        guard code == 0 else { throw SystemError.last("getsockname", on: "the listening socket") }
        return "\(host):\(UInt16(bigEndian: address.sin_port))"
    }
}
