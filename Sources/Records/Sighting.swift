// One advertisement received from a beacon, as the beacon stream stores it.
package import Host

/// The payload formats that the gateway distinguishes; the raw value is stored.
package enum BeaconKind: Int, Sendable, CaseIterable {
    case iBeacon = 1
    case altBeacon = 2
    case eddystoneUID = 3
    case eddystoneURL = 4
    case eddystoneTLM = 5
    case eddystoneEID = 6
    case ruuvi = 7
    case bthome = 8
    case manufacturer = 9
    case service = 10

    /// The name on the wire (waypost-protocol(7), RECORDS).
    package var name: String {
        switch self {
        case .iBeacon: "ibeacon"
        case .altBeacon: "altbeacon"
        case .eddystoneUID: "eddystone_uid"
        case .eddystoneURL: "eddystone_url"
        case .eddystoneTLM: "eddystone_tlm"
        case .eddystoneEID: "eddystone_eid"
        case .ruuvi: "ruuvi"
        case .bthome: "bthome"
        case .manufacturer: "manufacturer"
        case .service: "service"
        }
    }
}

/// A 48-bit Bluetooth device address, most significant byte first as it is written.
package struct BluetoothAddress: Sendable, Hashable, CustomStringConvertible {
    /// The address, in the low 48 bits.
    package var value: UInt64

    package init(value: UInt64) {
        self.value = value & 0xFFFF_FFFF_FFFF
    }

    /// Parses `C6:00:11:22:33:44` in either case; nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 6, parts.allSatisfy({ $0.utf8.count == 2 }),
            let bytes = bytes(hex: parts.joined())
        else { return nil }
        self.init(value: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    /// The address as `C6:00:11:22:33:44`.
    package var description: String {
        String(unsafeUninitializedCapacity: 17) { text in
            for place in 0..<17 {
                // Two digits and a colon per byte, from the top.
                let digit = place % 3
                let shift = UInt64(40 - place / 3 * 8 + (digit == 0 ? 4 : 0))
                let nibble = UInt8(truncatingIfNeeded: value >> shift) & 15
                text[place] =
                    digit == 2 ? UInt8(ascii: ":") : nibble < 10 ? 48 + nibble : 55 + nibble
            }
            return 17
        }
    }
}

/// The kind of address (Core Specification, Vol 6, Part B, 1.3); the raw value is stored.
package enum AddressType: Int, Sendable, CaseIterable {
    case `public` = 0
    case randomStatic = 1
    case randomResolvable = 2
    case randomNonResolvable = 3

    /// The name on the wire (waypost-protocol(7), RECORDS).
    package var name: String {
        switch self {
        case .public: "public"
        case .randomStatic: "random_static"
        case .randomResolvable: "random_resolvable"
        case .randomNonResolvable: "random_non_resolvable"
        }
    }
}

/// The part of a sighting that is the same for one beacon; stored once.
package struct BeaconIdentity: Sendable, Hashable {
    package var kind: BeaconKind
    /// The id in the payload; without one, the device address, or empty if that address changes.
    package var beaconID: String
    package var address: BluetoothAddress
    package var addressType: AddressType
    /// dBm at 1 m.
    package var txPower: Int?

    package init(
        kind: BeaconKind,
        beaconID: String,
        address: BluetoothAddress,
        addressType: AddressType,
        txPower: Int? = nil
    ) {
        self.kind = kind
        self.beaconID = beaconID
        self.address = address
        self.addressType = addressType
        self.txPower = txPower
    }
}

/// One received advertisement.
package struct Sighting: Sendable, Equatable {
    package var identity: BeaconIdentity
    /// dBm; nil if the controller did not know it (127 in the report).
    package var rssi: Int?
    package var telemetry: Telemetry
    /// The payload as received, only if no decoder knows it.
    package var data: [UInt8]
    package var stamp: Stamp

    package init(
        identity: BeaconIdentity,
        rssi: Int?,
        telemetry: Telemetry = Telemetry(),
        data: [UInt8] = [],
        stamp: Stamp
    ) {
        self.identity = identity
        self.rssi = rssi
        self.telemetry = telemetry
        self.data = data
        self.stamp = stamp
    }
}

extension Stream {
    package static let beacons = Stream(3, "beacons")
}

extension Sighting {
    package static let kind = StreamKind(
        .beacons,
        wire: "linux_bluez_beacons",
        table: "sightings",
        shape: .sightings
    )
}

/// Packs telemetry and data into one column.
///
/// Kinds that always have data store the data unchanged. Other kinds store the telemetry, or a zero
/// byte followed by the data.
package enum SightingPayload {
    /// No `Quantity` has this number.
    private static let dataMark: UInt8 = 0

    package static func pack(_ sighting: Sighting) -> [UInt8] {
        if sighting.data.isEmpty { return sighting.telemetry.packed }
        return isData(sighting.identity.kind) ? sighting.data : [dataMark] + sighting.data
    }

    package static func unpack(_ payload: [UInt8], _ kind: BeaconKind) -> (Telemetry, data: [UInt8])
    {
        if isData(kind) { return (Telemetry(), payload) }
        if payload.first == dataMark { return (Telemetry(), Array(payload.dropFirst())) }
        return (Telemetry(packed: payload) ?? Telemetry(), [])
    }

    private static func isData(_ kind: BeaconKind) -> Bool {
        kind == .manufacturer || kind == .service
    }
}
