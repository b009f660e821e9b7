// Turns advertising reports into sightings: decode, filter, throttle, stamp.
import Host
import Records

/// The intake of one beacon source; used by the source's thread only.
///
/// A repeated measurement becomes a sighting with RSSI but no readings.
struct SightingIntake: ~Copyable {
    /// Limit of the payload cache, in weights: 4096 common payloads, or fewer long ones and ones
    /// with several beacons.
    ///
    /// The cache pays off because most beacons repeat themselves.
    static let cacheLimit = 2 * 4096

    /// A sender and its payload length: alternating payloads (Eddystone UID, TLM) differ in length.
    private struct Key: Hashable {
        private let packed: UInt64

        init(_ report: AdvertisingReport) {
            // 48 bits of address, 2 of type, 14 of length: data is at most 1650 bytes long.
            let type = UInt64(report.addressType.rawValue)
            packed = report.address.value | type << 48 | UInt64(report.data.count & 0x3FFF) << 50
        }
    }

    /// The last payload of a key, decoded.
    private struct Known {
        var data: [UInt8]
        var admitted: [Admitted]

        /// Counts towards `cacheLimit`: 2 for a payload of 31 bytes with one beacon.
        var weight: Int { 1 + admitted.count + data.count / 64 }
    }

    /// A decoded beacon that passed the allow and deny lists.
    private struct Admitted {
        /// The sighting as first received.
        ///
        /// Its telemetry includes the measurement's sequence number, so that a restart recognizes
        /// the measurement.
        var sighting: Sighting
        var mark: MeasurementMark?
        /// The device to name in messages about these readings.
        var device: BluetoothAddress
        var unread: UnreadReason?
    }

    private let filter: BeaconFilter
    private let keepsUnknown: Bool
    private let keys: BTHomeKeys
    private let sink: any RecordSink
    private var heard: HeardBeacons
    private var cache: [Key: Known] = [:]
    /// The sum of the weights in `cache`.
    private(set) var cacheWeight = 0
    /// Messages already reported: each reason once per device with a key.
    private var reported: Set<Reported> = []

    private struct Reported: Hashable {
        var device: BluetoothAddress
        var reason: UnreadReason
    }

    init(_ settings: BeaconSettings, _ sink: any RecordSink) {
        filter = BeaconFilter(allow: settings.allow, deny: settings.deny)
        keepsUnknown = settings.keepsUnknown
        keys = BTHomeKeys(settings.bindkeys)
        self.sink = sink
        heard = HeardBeacons(rate: settings.maxRate)
        for sighting in sink.recentReadings() { heard.recall(sighting) }
    }

    /// Calls `body` with each sighting to store.
    mutating func receive(
        _ report: AdvertisingReport,
        at stamp: Stamp,
        _ body: (Sighting) -> Void
    ) {
        for admitted in decode(report, at: stamp) {
            var sighting = admitted.sighting
            let verdict = heard.receive(
                sighting.identity,
                admitted.mark,
                sighting.telemetry,
                at: stamp.boot
            )
            if verdict == .tooOften { continue }
            if let reason = admitted.unread { record(reason, of: admitted.device) }
            if case .replayed = verdict { record(.replayed, of: admitted.device) }
            if verdict != .new { sighting.telemetry = Telemetry() }
            (sighting.rssi, sighting.stamp) = (report.rssi, stamp)
            body(sighting)
        }
    }

    private mutating func record(_ reason: UnreadReason, of device: BluetoothAddress) {
        guard reported.insert(Reported(device: device, reason: reason)).inserted else { return }
        sink.warn(reason.text(of: device))
    }

    private mutating func decode(
        _ report: AdvertisingReport,
        at stamp: Stamp
    ) -> [Admitted] {
        let key = Key(report)
        if let index = cache.index(forKey: key) {
            if cache.values[index].data[...] == report.data { return cache.values[index].admitted }
            let admitted = admit(report, at: stamp)
            cacheWeight -= cache.values[index].weight
            // Not `Array(report.data)`: reuses the buffer, and a slice would retain the whole
            // packet.
            cache.values[index].data.replaceSubrange(0..., with: report.data)
            cache.values[index].admitted = admitted
            cacheWeight += cache.values[index].weight
            if cacheWeight > Self.cacheLimit { forget() }
            return admitted
        }
        let known = Known(data: Array(report.data), admitted: admit(report, at: stamp))
        if cacheWeight + known.weight > Self.cacheLimit { forget() }
        cacheWeight += known.weight
        cache[key] = known
        return known.admitted
    }

    private mutating func forget() {
        let sum = cache.values.reduce(0) { $0 + $1.weight }
        invariant(cacheWeight == sum, "the cache weighs what its payloads weigh")
        cache.removeAll(keepingCapacity: true)
        cacheWeight = 0
    }

    /// Returns the sender's address; of an anonymous advertisement the one in its payload, or nil.
    private func sender(
        of report: AdvertisingReport,
        _ beacon: DecodedBeacon
    ) -> (BluetoothAddress, AddressType)? {
        guard report.isAnonymous else { return (report.address, report.addressType) }
        return beacon.device.map { ($0, $0.value >> 46 == 3 ? .randomStatic : .public) }
    }

    private func admit(_ report: AdvertisingReport, at stamp: Stamp) -> [Admitted] {
        var admitted: [Admitted] = []
        for decoded in Advertisement.decode(report.data, unknown: keepsUnknown) {
            var beacon = decoded
            guard let (address, type) = sender(of: report, beacon) else { continue }
            let identity = BeaconIdentity(
                kind: beacon.kind,
                beaconID: beacon.identifier(address, type),
                address: address,
                addressType: type,
                txPower: beacon.txPower
            )
            guard filter.admits(identity) else { continue }
            let unread = keys.read(&beacon, from: address)
            if let mark = beacon.mark, !beacon.telemetry.isEmpty {
                beacon.telemetry.add(.mark, scaled: mark.stored)
            }
            let sighting = Sighting(
                identity: identity,
                rssi: report.rssi,
                telemetry: beacon.telemetry,
                data: beacon.data,
                stamp: stamp
            )
            let device = beacon.device ?? report.address
            admitted.append(
                Admitted(sighting: sighting, mark: beacon.mark, device: device, unread: unread)
            )
        }
        return admitted
    }
}
