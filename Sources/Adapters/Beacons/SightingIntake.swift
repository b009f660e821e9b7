// From advertising reports to sightings: decode, filter, throttle, stamp.
internal import Host
internal import Store

/// The intake of one beacon source; lives on its thread.
struct SightingIntake {
    /// Payloads remembered with what they decode to: most beacons repeat themselves.
    private static let cacheLimit = 4096

    /// A sender and the length of its payload: what comes in turn (Eddystone UID, TLM) differs in length.
    private struct Key: Hashable {
        private let packed: UInt64

        init(_ report: AdvertisingReport) {
            // 48 bits of address, 2 of type, 14 of length: data is at most 1650 bytes long.
            let type = UInt64(report.addressType.rawValue)
            packed = report.address.value | type << 48 | UInt64(report.data.count & 0x3FFF) << 50
        }
    }

    /// The last payload of a key.
    private struct Known {
        var data: [UInt8]
        var admitted: [Admitted]
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
    private var cache: [Key: Known] = [:]

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
        let key = Key(report)
        if let index = cache.index(forKey: key) {
            if cache.values[index].data[...] == report.data { return cache.values[index].admitted }
            let admitted = admit(report)
            // Not `Array(report.data)`: the room is there, and a slice would keep the whole packet.
            cache.values[index].data.replaceSubrange(0..., with: report.data)
            cache.values[index].admitted = admitted
            return admitted
        }
        let admitted = admit(report)
        if cache.count >= Self.cacheLimit { cache.removeAll(keepingCapacity: true) }
        cache[key] = Known(data: Array(report.data), admitted: admitted)
        return admitted
    }

    private func admit(_ report: AdvertisingReport) -> [Admitted] {
        Advertisement.decode(report.data, unknown: keepsUnknown).map { beacon in
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
    }
}
