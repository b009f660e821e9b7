// The one owner of libmicrohttpd's daemon.
import CMicrohttpd

/// What one server may cost (waypost-receiver(1), LIMITS).
package struct HTTPBounds: Sendable {
    /// Bytes of request line and header.
    package var header = 32 << 10
    package var connections = 64
    /// Of these from one address; 0: as many as there are.
    ///
    /// Behind a proxy, which has all connections: requests of one client at a time.
    package var perAddress = 16
    /// All connections come from a proxy, which says whose they are in `X-Forwarded-For`.
    package var isBehindProxy = false
    /// Seconds without a byte, and for a known client's next header or part of a body.
    package var patience = 30
    /// Seconds that whoever is not known has for all of a request.
    package var strangersPatience = 10
    /// Seconds from any byte of a body to the end of its request at the latest, however much came before.
    package var longestWait = 600
    /// Threads that work on bodies that are whole.
    package var workers = 32

    package init() {}
}

/// Serves a listening socket on a thread of its own until it goes.
package struct HTTPDaemon: ~Copyable {
    private let daemon: OpaquePointer
    private let side: Unmanaged<ServerSide>

    /// Takes the socket over.
    package init(
        listener: Int32,
        bounds: HTTPBounds,
        application: any HTTPApplication
    ) throws {
        let limits = waypost_http_bounds(
            // The fields of a header cost some bytes beside their text; what is left is for reading.
            connection_memory: bounds.header + (32 << 10),
            connections: UInt32(bounds.connections),
            per_address: UInt32(bounds.isBehindProxy ? 0 : bounds.perAddress),
            idle_seconds: UInt32(bounds.patience)
        )
        let side = Unmanaged.passRetained(try ServerSide(bounds, application))
        guard
            let daemon = waypost_http_start(
                listener,
                limits,
                handleRequest,
                endRequest,
                noteConnection,
                side.toOpaque()
            )
        else {
            side.release()
            throw Trouble("MHD_start_daemon", "the listening socket")
        }
        self.daemon = daemon
        self.side = side
    }

    deinit {
        // libmicrohttpd ends the program over a connection that is suspended then: answers come first.
        side.takeUnretainedValue().finish()
        MHD_stop_daemon(daemon)
        side.release()
    }

    /// Takes no new connection, and has no new body worked on; those worked on are answered, streams ended.
    package func windDown() {
        MHD_quiesce_daemon(daemon)
        side.takeUnretainedValue().finish()
    }
}

// MARK: What libmicrohttpd calls, on its thread

/// Called once with the header, then with each part of the body, then with none, and again after a rest.
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
        let client = side.isBehindProxy ? request.forwardedFor : nil
        if let client { head.address = client }
        let exchange = RequestExchange(request, head, client: client)
        slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
        return result(side.begin(exchange))
    }
    let exchange = Unmanaged<RequestExchange>.fromOpaque(known).takeUnretainedValue()
    guard size.pointee > 0 else { return result(side.proceed(exchange)) }
    let part = UnsafeRawBufferPointer(start: data, count: size.pointee)
    size.pointee = 0
    return result(side.take(part, exchange))
}

private func result(_ isDone: Bool) -> MHD_Result { waypost_http_result(isDone ? 1 : 0) }

/// The request is over, answered or not.
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

/// A connection has come, or its socket is about to be closed.
private func noteConnection(
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
