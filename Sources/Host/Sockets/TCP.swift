// Connects TCP sockets with a timeout.
import CLinux
import Glibc

/// Stream sockets.
package enum TCP {
    /// Connects to the first address of `host` that answers; throws the error of the last one
    /// tried.
    ///
    /// A name server has 10 s to answer; `timeout` limits the wait for each address.
    package static func connect(
        host: String,
        port: UInt16,
        timeout: Duration = .seconds(5),
        until stop: StopSignal
    ) throws -> Descriptor {
        var last: Int32 = ECONNREFUSED
        let limit = Duration.seconds(10)
        for address in try NameLookup.addresses(of: host, port: port, within: limit, until: stop)
        where !stop.isRaised {
            switch attempt(address, timeout: timeout, until: stop) {
            case .success(let number): return Descriptor(owning: number)
            case .failure(let error): last = error.code
            }
        }
        throw ConnectError(place: "\(host):\(port)", reason: String(cString: strerror(last)))
    }

    private static func attempt(
        _ address: SocketAddress,
        timeout: Duration,
        until stop: StopSignal
    ) -> Result<Int32, SystemError> {
        let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let number = waypost_socket(address.family, address.type | flags, address.proto)
        guard number >= 0 else { return .failure(.last("socket")) }
        let code = address.withPointer { Glibc.connect(number, $0, $1) }
        var result = code == 0 ? 0 : errno
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
    /// The name could not be resolved, which says nothing about the server itself.
    package var isOfName = false

    package var description: String { "\(place): \(reason)" }
}
