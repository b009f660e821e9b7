// Sends the heartbeat: a request to a monitoring service that alerts someone when it stops coming.
import Host
import HTTP
import Queue

/// Requests a URL at most once per minute; lives on the uploader's thread.
///
/// A failed request is not reported here: the monitoring service notices its absence.
final class HeartbeatRequest {
    private static let interval = Duration.seconds(60)

    private let transport: Transport
    private let url: String
    private var lastAt: BootInstant?

    /// Creates the transport; throws if libcurl cannot be used.
    init(_ settings: TransportSettings) throws {
        transport = try Transport(settings)
        url = settings.endpoint
    }

    /// Sends a heartbeat unless one was sent within a minute; returns its bytes on the wire.
    func beat(at now: BootInstant, until stop: StopSignal) -> Traffic {
        if let lastAt, now - lastAt < Self.interval { return Traffic() }
        lastAt = now
        _ = transport.send(HTTPRequest(getting: url), until: stop)
        return transport.takeTraffic()
    }
}
