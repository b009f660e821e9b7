// The owner of libmicrohttpd's daemon.
import CMicrohttpd
import Host

/// The limits of a server (waypost-receiver(1), LIMITS).
package struct HTTPBounds: Sendable {
    /// Bytes of the request line and header.
    package var header = 32 << 10
    package var connections = 64
    /// Connections from one network (`clientNetwork`); 0 for no separate limit.
    ///
    /// Behind a proxy, which owns all connections: concurrent requests of one client.
    package var perAddress = 16
    /// True if all connections come from a proxy, which names the client in `X-Forwarded-For`.
    package var isBehindProxy = false
    /// Seconds without a byte, and for a known client's next header or part of a body.
    package var patience = 30
    /// Seconds that an unknown client has for a whole request.
    package var strangersPatience = 10
    /// The latest end of a request in seconds after any byte of its body, however much came before.
    package var longestWait = 600
    /// The number of threads that process complete bodies.
    package var workers = 32

    package init() {}
}

/// Serves a listening socket on its own thread for its lifetime.
package struct HTTPDaemon: ~Copyable {
    private let daemon: OpaquePointer
    private let side: Unmanaged<ServerSide>

    /// Takes ownership of the socket.
    package init(
        listener: Int32,
        bounds: HTTPBounds,
        application: any HTTPApplication
    ) throws {
        let limits = waypost_http_bounds(
            // Header fields need memory besides their text; the rest is the read buffer.
            connection_memory: bounds.header + (32 << 10),
            connections: UInt32(bounds.connections),
            idle_seconds: UInt32(bounds.patience)
        )
        let side = Unmanaged.passRetained(try ServerSide(bounds, application))
        guard
            let daemon = waypost_http_start(
                listener,
                limits,
                handleRequest,
                endRequest,
                recordConnection,
                side.toOpaque()
            )
        else {
            side.release()
            throw SystemError.last("MHD_start_daemon", on: "the listening socket")
        }
        self.daemon = daemon
        self.side = side
    }

    deinit {
        // libmicrohttpd aborts if a connection is still suspended, so pending answers come first.
        side.takeUnretainedValue().finish()
        MHD_stop_daemon(daemon)
        side.release()
    }

    /// Stops accepting connections and starting work on bodies; work in progress is answered,
    /// streams end.
    package func windDown() {
        MHD_quiesce_daemon(daemon)
        side.takeUnretainedValue().finish()
    }
}

// MARK: Callbacks of libmicrohttpd, on its thread

/// Called with the header, with each part of the body, at its end, and after each resume.
private func handleRequest(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ url: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?,
    _ version: UnsafePointer<CChar>?,
    _ data: UnsafePointer<CChar>?,
    _ size: UnsafeMutablePointer<Int>?,
    _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let context, let connection, let url, let method, let size, let slot else {
        return waypost_http_result(0)
    }
    let side = Unmanaged<ServerSide>.fromOpaque(context).takeUnretainedValue()
    guard let known = slot.pointee else {
        let request = HTTPConnection(handle: connection)
        var head = request.head(method: method, url: url)
        let client = side.isBehindProxy ? request.forwardedFor.map(clientNetwork) : nil
        if let client { head.address = client }
        let exchange = RequestExchange(request, head, client: client)
        slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
        return result(side.begin(exchange))
    }
    let exchange = Unmanaged<RequestExchange>.fromOpaque(known).takeUnretainedValue()
    guard size.pointee > 0 else { return result(side.proceed(exchange)) }
    let part = UnsafeRawBufferPointer(start: data, count: size.pointee)
    size.pointee = 0
    return result(side.receive(part, exchange))
}

private func result(_ isDone: Bool) -> MHD_Result { waypost_http_result(isDone ? 1 : 0) }

/// Called when the request is over, answered or not.
private func endRequest(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ code: MHD_RequestTerminationCode
) {
    guard let context, let known = slot?.pointee else { return }
    slot?.pointee = nil
    let exchange = Unmanaged<RequestExchange>.fromOpaque(known).takeRetainedValue()
    Unmanaged<ServerSide>.fromOpaque(context).takeUnretainedValue().end(exchange)
}

/// Called for a new connection, and before its socket is closed.
private func recordConnection(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ code: MHD_ConnectionNotificationCode
) {
    guard let context, let connection else { return }
    let connections = Unmanaged<ServerSide>.fromOpaque(context).takeUnretainedValue().connections
    let request = HTTPConnection(handle: connection)
    if waypost_http_is_closed(code) != 0 {
        connections.forget(request)
    } else {
        connections.start(request, isKnown: false)
    }
}
