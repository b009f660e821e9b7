// Telling systemd how it goes (sd_notify(3)): one datagram, no library.
internal import CLinux
internal import Glibc
internal import Host

/// The service manager's socket, if the process was started by one that wants to know.
struct ServiceManager: Sendable {
    private let path: String?
    /// How often it wants a sign of life; nil if it does not.
    private let watchdog: Duration?

    /// How often the gateway looks after itself: as often as is asked for, at least once in `patience`.
    func healthInterval(_ patience: Duration) -> Duration { min(patience, watchdog ?? patience) }

    init(environment: [String: String]) {
        path = environment["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        watchdog = environment["WATCHDOG_USEC"].flatMap { Int64($0) }.map { .microseconds($0 / 2) }
    }

    func notify(_ message: String) {
        guard let path else { return }
        let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return }
        let owner = Descriptor(owning: number)
        // A manager that does not read must not hold up what reports to it.
        UnixSocket.limitSending(on: owner.number)
        // A leading @ names an abstract socket, whose address begins with a NUL.
        let name = path.hasPrefix("@") ? [0] + Array(path.utf8.dropFirst()) : Array(path.utf8)
        _ = UnixSocket.withAddress(name) { address, length in
            message.withCString { sendto(owner.number, $0, strlen($0), 0, address, length) }
        }
    }
}

/// Unix sockets by their paths.
enum UnixSocket {
    /// A stream connection; waits a second at most where as many programs wait already as there is room for.
    static func connect(to path: String) throws(SystemError) -> Descriptor {
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let number = socket(AF_UNIX, flags, 0)
        guard number >= 0 else { throw SystemError.last("socket", on: path) }
        let owner = Descriptor(owning: number)
        limitSending(on: number)
        let code = withAddress(Array(path.utf8)) { Glibc.connect(number, $0, $1) }
        guard let code else { throw SystemError("connect", on: path, code: ENAMETOOLONG) }
        guard code == 0 else { throw SystemError.last("connect", on: path) }
        return owner
    }

    /// Whatever is sent, or connected, fails after a second if the other side takes nothing.
    static func limitSending(on socket: Int32) {
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
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
