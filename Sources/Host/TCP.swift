// Connecting a TCP socket without blocking for longer than wanted.
internal import CLinux
internal import Glibc

/// Stream sockets.
package enum TCP {
    /// Connects to the first address of `host` that answers; throws what the last one said.
    package static func connect(
        host: String,
        port: UInt16,
        timeout: Duration = .seconds(5),
        until stop: StopSignal
    ) throws -> Descriptor {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = stop.life.during("getaddrinfo") {
            getaddrinfo(host, String(port), &hints, &list)
        }
        guard code == 0 else {
            throw ConnectError(
                place: "\(host):\(port)",
                reason: String(cString: gai_strerror(code))
            )
        }
        defer { freeaddrinfo(list) }
        var last: Int32 = ECONNREFUSED
        var entry = list
        while let address = entry?.pointee, !stop.isRaised {
            switch attempt(address, timeout: timeout, until: stop) {
            case .success(let number): return Descriptor(owning: number)
            case .failure(let error): last = error.code
            }
            entry = address.ai_next
        }
        throw ConnectError(place: "\(host):\(port)", reason: String(cString: strerror(last)))
    }

    private static func attempt(
        _ address: addrinfo,
        timeout: Duration,
        until stop: StopSignal
    ) -> Result<Int32, SystemError> {
        let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let number = socket(address.ai_family, address.ai_socktype | flags, address.ai_protocol)
        guard number >= 0 else { return .failure(.last("socket")) }
        var result = Glibc.connect(number, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno
        if result == EINPROGRESS {
            var entries = [
                PollEntry(number, PollEntry.writable), PollEntry(stop.descriptor),
            ]
            _ = stop.life.during("connect", for: timeout) {
                wait(for: &entries, timeout: timeout)
            }
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(number, SOL_SOCKET, SO_ERROR, &result, &size)
            if !entries[0].isReady { result = ETIMEDOUT }
        }
        guard result == 0 else {
            close(number)
            return .failure(SystemError("connect", code: result))
        }
        return .success(number)
    }
}

/// A connection that could not be made: `localhost:2947: Connection refused`.
package struct ConnectError: Error, Sendable, Equatable, CustomStringConvertible {
    package var place: String
    package var reason: String

    package var description: String { "\(place): \(reason)" }
}
