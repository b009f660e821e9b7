// Splits advertising data into AD structures and decodes the beacons in them.
import Records

/// One AD structure (Core Specification, Vol 3, Part C, 11).
struct ADStructure {
    static let uuid16ServiceData: UInt8 = 0x16
    static let uuid32ServiceData: UInt8 = 0x20
    static let uuid128ServiceData: UInt8 = 0x21
    static let manufacturerData: UInt8 = 0xFF

    var type: UInt8
    var payload: ArraySlice<UInt8>
}

/// Decodes advertising data.
///
/// Accepts any bytes; malformed data yields no beacons.
package enum Advertisement {
    /// Returns the next AD structure; nil at the end, and at one that is empty or truncated.
    private static func structure(_ cursor: inout ByteCursor) -> ADStructure? {
        guard let length = cursor.byte(), let body = cursor.bytes(Int(length)),
            let type = body.first
        else { return nil }
        return ADStructure(type: type, payload: body.dropFirst())
    }

    /// Returns the beacons in the data, in the data's order.
    ///
    /// With `unknown`, also manufacturer and service data that no decoder knows.
    package static func decode(_ data: ArraySlice<UInt8>, unknown: Bool) -> [DecodedBeacon] {
        var beacons: [DecodedBeacon] = []
        var cursor = ByteCursor(data)
        while let structure = structure(&cursor) {
            if let beacon = beacon(structure, unknown: unknown) { beacons.append(beacon) }
        }
        return beacons
    }

    private static func beacon(_ structure: ADStructure, unknown: Bool) -> DecodedBeacon? {
        switch structure.type {
        case ADStructure.manufacturerData:
            manufacturer(structure.payload, unknown: unknown)
        case ADStructure.uuid16ServiceData:
            service(structure.payload, unknown: unknown)
        case ADStructure.uuid32ServiceData:
            other(.service, structure.payload, atLeast: 4, unknown: unknown)
        case ADStructure.uuid128ServiceData:
            other(.service, structure.payload, atLeast: 16, unknown: unknown)
        default:
            nil
        }
    }

    private static func manufacturer(
        _ payload: ArraySlice<UInt8>,
        unknown: Bool
    ) -> DecodedBeacon? {
        if let beacon = IBeacon.decode(payload) ?? Ruuvi.decode(payload)
            ?? AltBeacon.decode(payload)
        {
            return beacon
        }
        return other(.manufacturer, payload, atLeast: 2, unknown: unknown)
    }

    private static func service(_ payload: ArraySlice<UInt8>, unknown: Bool) -> DecodedBeacon? {
        if let beacon = Eddystone.decode(payload) ?? BTHome.decode(payload) { return beacon }
        return other(.service, payload, atLeast: 2, unknown: unknown)
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
    /// Decodes a person's input: as `decode`, but accepts a bare Ruuvi payload, as published, too.
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
