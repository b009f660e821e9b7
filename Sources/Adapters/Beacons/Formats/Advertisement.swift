// Splits advertising data into AD structures and decodes the beacons in them.
import Records

/// Decodes advertising data.
///
/// Accepts any bytes; malformed data yields no beacons.
package enum Advertisement {
    /// Returns the beacons in the data, in the data's order.
    ///
    /// If `unknown` is true, also returns manufacturer and service data that no decoder supports.
    package static func decode(_ data: ArraySlice<UInt8>, unknown: Bool) -> [DecodedBeacon] {
        var beacons: [DecodedBeacon] = []
        var cursor = ByteCursor(data)
        // One AD structure after the other (Core Specification, Vol 3, Part C, 11), up to one that
        // is empty or truncated.
        while let length = cursor.byte(), let body = cursor.bytes(Int(length)),
            let type = body.first
        {
            if let beacon = beacon(type, body.dropFirst(), unknown: unknown) {
                beacons.append(beacon)
            }
        }
        return beacons
    }

    private static func beacon(
        _ type: UInt8,
        _ payload: ArraySlice<UInt8>,
        unknown: Bool
    ) -> DecodedBeacon? {
        switch type {
        case 0xFF:
            IBeacon.decode(payload) ?? Ruuvi.decode(payload) ?? AltBeacon.decode(payload)
                ?? other(.manufacturer, payload, atLeast: 2, unknown: unknown)
        // Service data of a UUID of 16, 32 or 128 bits.
        case 0x16:
            Eddystone.decode(payload) ?? BTHome.decode(payload)
                ?? other(.service, payload, atLeast: 2, unknown: unknown)
        case 0x20: other(.service, payload, atLeast: 4, unknown: unknown)
        case 0x21: other(.service, payload, atLeast: 16, unknown: unknown)
        default: nil
        }
    }

    /// Returns a payload that no decoder knows; `atLeast` is the length of its company id or UUID.
    private static func other(
        _ kind: BeaconKind,
        _ payload: ArraySlice<UInt8>,
        atLeast: Int,
        unknown: Bool
    ) -> DecodedBeacon? {
        guard unknown, payload.count >= atLeast else { return nil }
        return DecodedBeacon(kind: kind, data: Array(payload))
    }
}

extension Advertisement {
    /// Decodes bytes that a person typed.
    ///
    /// Also accepts a Ruuvi payload without its company id, as in Ruuvi's documentation, and
    /// returns unknown payloads.
    package static func decodeLeniently(_ bytes: [UInt8]) -> [DecodedBeacon] {
        let beacons = decode(bytes[...], unknown: false)
        if beacons.isEmpty, let format = bytes.first, Ruuvi.lengths[format] == bytes.count,
            let beacon = Ruuvi.decode([0x99, 0x04] + bytes[...])
        {
            return [beacon]
        }
        return decode(bytes[...], unknown: true)
    }
}
