// From advertising reports to sightings: decode, filter, throttle, stamp.
internal import Host
internal import Store

/// The intake of one beacon source; lives on its thread.
struct SightingIntake {
    /// Payloads remembered with what they decode to: most beacons repeat themselves.
    private static let cacheLimit = 4096

    private struct Key: Hashable {
        var address: BluetoothAddress
        var type: AddressType
        var data: ArraySlice<UInt8>
    }

    /// A decoded beacon that the lists admit.
    private struct Admitted {
        var identity: BeaconIdentity
        var telemetry: Telemetry
        var data: [UInt8]
    }

    private let filter: BeaconFilter
    private let keepsUnknown: Bool
    private var rate: RateLimit
    private var cache: [Key: [Admitted]] = [:]

    init(_ settings: BeaconSettings) {
        filter = BeaconFilter(allow: settings.allow, deny: settings.deny)
        keepsUnknown = settings.keepsUnknown
        rate = RateLimit(rate: settings.maxRate)
    }

    /// Calls `body` with each sighting to be kept.
    mutating func take(
        _ report: AdvertisingReport,
        at stamp: Stamp,
        _ body: (Sighting) -> Void
    ) {
        for admitted in decode(report) where rate.admits(admitted.identity, at: stamp.boot) {
            body(
                Sighting(
                    identity: admitted.identity,
                    rssi: report.rssi,
                    telemetry: admitted.telemetry,
                    data: admitted.data,
                    stamp: stamp
                )
            )
        }
    }

    private mutating func decode(_ report: AdvertisingReport) -> [Admitted] {
        let key = Key(address: report.address, type: report.addressType, data: report.data)
        if let known = cache[key] { return known }
        let admitted = Advertisement.decode(report.data, unknown: keepsUnknown).map { beacon in
            Admitted(
                identity: BeaconIdentity(
                    kind: beacon.kind,
                    beaconID: beacon.beaconID ?? report.address.description,
                    address: report.address,
                    addressType: report.addressType,
                    txPower: beacon.txPower
                ),
                telemetry: beacon.telemetry,
                data: beacon.data
            )
        }.filter { filter.admits($0.identity) }
        if cache.count >= Self.cacheLimit { cache.removeAll(keepingCapacity: true) }
        // A slice would keep the whole packet it was cut from.
        cache[Key(address: key.address, type: key.type, data: Array(key.data)[...])] = admitted
        return admitted
    }
}
