// A call to a watcher that all is well: who misses it for long tells a person.
import Host
import HTTP
import Queue

/// Fetches an address at most once a minute; lives on the uploader's thread.
///
/// A call that fails is not told here: missing it is what the watcher is for.
final class HeartbeatRequest {
    private static let interval = Duration.seconds(60)

    private let transport: Transport
    private let url: String
    private var lastAt: BootInstant?

    /// Throws if libcurl cannot be used.
    init(_ settings: TransportSettings) throws {
        transport = try Transport(settings)
        url = settings.endpoint
    }

    /// Returns the bytes on the wire that it cost.
    func beat(at now: BootInstant, until stop: StopSignal) -> Traffic {
        if let lastAt, now - lastAt < Self.interval { return Traffic() }
        lastAt = now
        transport.meter.clear()
        _ = transport.get(url, until: stop)
        return transport.meter.traffic
    }
}
