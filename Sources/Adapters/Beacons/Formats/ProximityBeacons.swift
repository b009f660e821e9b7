// Decodes iBeacon and AltBeacon: an identity and a calibrated power.
import Host
import Records

/// Decodes Apple's iBeacon (Proximity Beacon Specification, release R1).
package enum IBeacon {
    /// Company 0x004C, type 02, length 0x15; other Apple data is not a beacon.
    private static let header: [UInt8] = [0x4C, 0x00, 0x02, 0x15]

    /// Decodes a payload; ignores extra bytes, which some advertisers send.
    package static func decode(_ payload: ArraySlice<UInt8>) -> DecodedBeacon? {
        guard payload.starts(with: header) else { return nil }
        var cursor = ByteCursor(payload.dropFirst(header.count))
        guard let uuid = cursor.bytes(16), let major = cursor.bigEndian(2),
            let minor = cursor.bigEndian(2), let power = cursor.signed()
        else { return nil }
        return DecodedBeacon(
            kind: .iBeacon,
            beaconID: "\(dashed(hex(uuid)))/\(major)/\(minor)",
            txPower: Int(power)
        )
    }

    private static func dashed(_ digits: String) -> String {
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        return text
    }
}

/// AltBeacon 1.0 (github.com/AltBeacon/spec).
package enum AltBeacon {
    /// Decodes a payload; the reserved byte at the end may be missing, bytes after it are ignored.
    package static func decode(_ payload: ArraySlice<UInt8>) -> DecodedBeacon? {
        var cursor = ByteCursor(payload.dropFirst(2))
        guard cursor.bigEndian(2) == 0xBEAC, let organisation = cursor.bytes(16),
            let instance = cursor.bytes(4), let power = cursor.signed()
        else { return nil }
        return DecodedBeacon(
            kind: .altBeacon,
            beaconID: "\(hex(organisation))/\(hex(instance))",
            txPower: Int(power)
        )
    }
}
