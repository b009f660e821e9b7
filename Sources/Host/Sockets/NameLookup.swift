// DNS lookup with a timeout.
import Glibc
import Synchronization

/// An address to connect to, as getaddrinfo(3) returns it.
struct SocketAddress: Sendable {
    var family: Int32
    var type: Int32
    var proto: Int32
    /// The bytes of a `sockaddr`.
    var bytes: [UInt8]

    /// Calls `body` with the address as connect(2) and bind(2) take it.
    func withPointer(_ body: (UnsafePointer<sockaddr>?, socklen_t) -> Int32) -> Int32 {
        bytes.withUnsafeBytes {
            body($0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count))
        }
    }
}

/// One getaddrinfo(3), which can hang for ever, on a separate thread.
final class NameLookup: Sendable {
    /// Lookups in progress by `host:port`; later callers join, so each name has at most one thread.
    private static let underWay = Mutex([String: NameLookup]())

    private let answer = Mutex<Result<[SocketAddress], ConnectError>?>(nil)
    private let over: Wakeup
    private let begun = SystemClock().now()

    private init() throws { over = try Wakeup() }

    /// Returns the addresses of stream sockets for a host; at least one.
    ///
    /// Throws a ConnectError with the resolver's message, or if it did not answer within `limit`.
    static func addresses(
        of host: String,
        port: UInt16,
        within limit: Duration,
        until stop: StopSignal
    ) throws -> [SocketAddress] {
        if let numeric = numeric(host, port) { return [numeric] }
        let lookup = try join(host, port)
        var entries = [PollEntry(lookup.over.descriptor), PollEntry(stop.descriptor)]
        _ = stop.wait(for: &entries, timeout: limit)
        if let answer = lookup.answer.withLock({ $0 }) { return try answer.get() }
        let seconds = (SystemClock().now() - lookup.begun).milliseconds / 1000
        throw ConnectError(
            place: "\(host):\(port)",
            reason: "the name server has not answered for \(seconds) s",
            isOfName: true
        )
    }

    /// Returns the address that a host is by itself, without a name server; nil for a name.
    static func numeric(_ host: String, _ port: UInt16) -> SocketAddress? {
        try? resolve(host, port, AI_NUMERICHOST).get().first
    }

    private static func join(_ host: String, _ port: UInt16) throws -> NameLookup {
        let place = "\(host):\(port)"
        return try underWay.withLock { underWay in
            if let lookup = underWay[place] { return lookup }
            let lookup = try NameLookup()
            let thread = try OwnThread("lookup") {
                let answer = resolve(host, port, 0)
                lookup.answer.withLock { $0 = answer }
                Self.underWay.withLock { $0[place] = nil }
                lookup.over.signal()
            }
            thread.detach()
            underWay[place] = lookup
            return lookup
        }
    }

    private static func resolve(
        _ host: String,
        _ port: UInt16,
        _ flags: Int32
    ) -> Result<[SocketAddress], ConnectError> {
        var hints = addrinfo()
        hints.ai_flags = flags
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            let reason = String(cString: gai_strerror(code))
            return .failure(
                ConnectError(place: "\(host):\(port)", reason: reason, isOfName: true)
            )
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry = list
        while let address = entry?.pointee {
            let bytes = UnsafeRawBufferPointer(
                start: address.ai_addr,
                count: Int(address.ai_addrlen)
            )
            addresses.append(
                SocketAddress(
                    family: address.ai_family,
                    type: address.ai_socktype,
                    proto: address.ai_protocol,
                    bytes: Array(bytes)
                )
            )
            entry = address.ai_next
        }
        return .success(addresses)
    }
}
