// One run of the Bluetooth proxy: its thread and its server.
import Beacons
import Host
import Proxy
import Records
import Setup
import Status
import StatusBoard

/// The settings that the proxy depends on; it restarts when they change.
struct ProxySlice: Sendable, Equatable {
    var settings: ProxySettings
    var source: BeaconOrigin
    var isActiveScan: Bool

    /// Returns nil without a proxy.
    init?(_ configuration: Configuration) {
        guard configuration.proxy.isEnabled else { return nil }
        settings = configuration.proxy
        (source, isActiveScan) = (configuration.beacons.source, configuration.beacons.scan.isActive)
    }
}

/// The Bluetooth proxy from its start to its stop.
final class ProxyRun: Sendable {
    let slice: ProxySlice
    private let key: ProxyKey
    private let server: ProxyServer
    let thread: StoppableThread

    /// Reads the key, opens the socket and starts the thread.
    init(_ slice: ProxySlice, _ context: ServiceContext, _ tap: AdvertisementTap) throws {
        let key = try ProxyKey.read(slice.settings.keyFile ?? "")
        let (board, log) = (context.board, context.log)
        let facts = ProxyFacts(
            ProxyIdentity(
                name: slice.settings.name,
                area: slice.settings.area,
                deviceID: context.deviceID,
                version: context.version
            ),
            key: key.bytes,
            adapter: {
                guard case .adapter(let number) = slice.source else { return nil }
                return bluetoothAddress(ofAdapter: number)
            },
            scanner: { ScannerState(board.scannerPhase, isActive: slice.isActiveScan) }
        )
        let server = try ProxyServer(
            facts,
            listen: slice.settings.listen,
            bus: AvahiAnnouncement.bus(context.environment),
            tap: tap,
            board: board.proxy,
            clock: context.clock,
            warn: { log.warning("proxy", ["why": $0]) }
        )
        (self.slice, self.key, self.server) = (slice, key, server)
        thread = try StoppableThread("proxy") { server.run(until: $0) }
    }

    /// Whether the key file still holds the key; true if it cannot be read, so that the proxy runs on.
    var hasCurrentKey: Bool {
        guard let now = try? ProxyKey.read(slice.settings.keyFile ?? "") else { return true }
        return now == key
    }

    /// Wakes the thread once, for a heartbeat.
    func ask() {
        thread.life.asked()
        server.ask()
    }
}

extension GatewayBoard {
    /// The beacon source's state, as the API counts it.
    fileprivate var scannerPhase: ScannerState.Phase {
        guard resting.value[.beacons] == nil else { return .idle }
        switch sources[.beacons]?.state {
        case .loading: return .starting
        case .loaded: return .running
        case .error: return .failed
        case .unknown, nil: return .idle
        }
    }
}
