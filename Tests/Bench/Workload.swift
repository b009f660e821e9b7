// The sightings that every side stores: forty beacons, as a site has them.
import Beacons
import Host
import Queue
import Records

/// Advertisements and what they decode to, the same at each run.
///
/// Of each forty, 22 are iBeacons and 8 Eddystone UIDs that repeat themselves, 8 RuuviTags and 2 Eddystone
/// TLMs that say something new each time.
enum Workload {
    static let beacons = 40
    /// Sightings made ready beforehand; sides that need no more bytes go through them again and again.
    static let cycle = 4000
    /// The time between two sightings: about 3.6 per second and beacon, below the default limit.
    static let interval = Duration.milliseconds(7)
    /// The first sighting's time.
    static let start = Stamp(
        boot: BootInstant(nanoseconds: 1_000_000_000_000_000),
        wall: WallTime(milliseconds: 1_790_000_000_000)
    )
    /// Admits all of it, so that the filter has its work.
    static let allow = ["kind:ibeacon", "kind:eddystone_*", "kind:ruuvi"]

    static func address(_ index: Int) -> UInt64 { 0xC0FF_EE00_0000 + UInt64(index % beacons) }

    static func rssi(_ index: Int) -> Int8 { -40 - Int8(index * 7919 % 50) }

    /// The advertising data of a sighting.
    static func advertisement(_ index: Int) -> [UInt8] {
        let beacon = index % beacons
        let turn = index / beacons
        switch (beacon % 5, beacon % 20) {
        case (0, _): return ruuvi(beacon, turn)
        case (2, _): return eddystone(beacon)
        case (_, 1): return telemetry(turn)
        default: return iBeacon(beacon)
        }
    }

    private static let flags: [UInt8] = [0x02, 0x01, 0x06]
    private static let uuid: [UInt8] = [
        0xF7, 0x82, 0x6D, 0xA6, 0x4F, 0xA2, 0x4E, 0x98, 0x80, 0x24, 0xBC, 0x5B, 0x71, 0xE0, 0x89,
        0x3E,
    ]

    private static func iBeacon(_ beacon: Int) -> [UInt8] {
        var data = flags + [0x1A, 0xFF, 0x4C, 0x00, 0x02, 0x15]
        data += uuid
        data += [0, 1, 0, UInt8(beacon), 0xC5]
        return data
    }

    private static func eddystone(_ beacon: Int) -> [UInt8] {
        var data = flags + [0x03, 0x03, 0xAA, 0xFE, 0x17, 0x16, 0xAA, 0xFE, 0x00, 0xEE]
        data += uuid.prefix(10)
        data += [0, 0, 0, 0, 0, UInt8(beacon), 0, 0]
        return data
    }

    private static func telemetry(_ turn: Int) -> [UInt8] {
        var data = flags + [0x03, 0x03, 0xAA, 0xFE, 0x11, 0x16, 0xAA, 0xFE, 0x20, 0x00, 0x0B, 0xB8]
        data += [0x15, 0x80]
        data += bigEndian(100_000 + turn, 4)
        data += bigEndian(500_000 + turn * 3, 4)
        return data
    }

    private static func ruuvi(_ beacon: Int, _ turn: Int) -> [UInt8] {
        var data = flags + [0x1B, 0xFF, 0x99, 0x04, 0x05]
        data += bigEndian(0x12FC + turn % 64, 2)
        data += [0x53, 0x94, 0xC3, 0x7C, 0x00, 0x04, 0xFF, 0xFC, 0x04, 0x0C, 0xAC, 0x36, 0x42]
        // Sequence numbers of the same stored size throughout.
        data += bigEndian(20_000 + turn % 40_000, 2)
        data += bigEndian(Int(address(beacon)), 6)
        return data
    }

    static func bigEndian(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    /// The sightings of one cycle, as the decoder makes them.
    static func sightings() throws -> [Sighting] {
        try (0..<cycle).map { index in
            let data = advertisement(index)
            guard let beacon = Advertisement.decode(data[...], unknown: false).first else {
                throw BenchFailure("sighting \(index) of the bench does not decode")
            }
            let address = BluetoothAddress(value: address(index))
            let identity = BeaconIdentity(
                kind: beacon.kind,
                beaconID: beacon.identifier(address, .randomStatic),
                address: address,
                addressType: .randomStatic,
                txPower: beacon.txPower
            )
            return Sighting(
                identity: identity,
                rssi: Int(rssi(index)),
                telemetry: beacon.telemetry,
                stamp: start
            )
        }
    }
}
