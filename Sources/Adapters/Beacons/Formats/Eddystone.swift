// Decodes Eddystone frames (github.com/google/eddystone, protocol specification).
import Host
import Records

/// Decodes service data of UUID 0xFEAA: UID, URL, TLM and EID frames.
package enum Eddystone {
    /// Eddystone sends its power at 0 m; the loss over the first metre is 41 dB.
    private static let firstMetre = 41

    package static func decode(_ payload: ArraySlice<UInt8>) -> DecodedBeacon? {
        var cursor = ByteCursor(payload)
        guard cursor.littleEndian(2) == 0xFEAA, let frame = cursor.byte() else { return nil }
        switch frame {
        case 0x00: return uid(&cursor)
        case 0x10: return url(&cursor)
        case 0x20: return tlm(&cursor)
        case 0x30: return eid(&cursor)
        default: return nil
        }
    }

    private static func uid(_ cursor: inout ByteCursor) -> DecodedBeacon? {
        guard let power = cursor.signed(), let namespace = cursor.bytes(10),
            let instance = cursor.bytes(6)
        else { return nil }
        return DecodedBeacon(
            kind: .eddystoneUID,
            beaconID: "\(hex(namespace))/\(hex(instance))",
            txPower: Int(power) - firstMetre
        )
    }

    private static func eid(_ cursor: inout ByteCursor) -> DecodedBeacon? {
        guard let power = cursor.signed(), let id = cursor.bytes(8) else { return nil }
        return DecodedBeacon(
            kind: .eddystoneEID,
            beaconID: hex(id),
            txPower: Int(power) - firstMetre
        )
    }

    private static let schemes = ["http://www.", "https://www.", "http://", "https://"]
    private static let expansions = [
        ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/",
        ".com", ".org", ".edu", ".net", ".info", ".biz", ".gov",
    ]

    /// The specification's limit in encoded bytes.
    ///
    /// Without it, an id could have 2000 characters.
    private static let longestURL = 17

    private static func url(_ cursor: inout ByteCursor) -> DecodedBeacon? {
        guard let power = cursor.signed(), let scheme = cursor.byte(), Int(scheme) < schemes.count,
            cursor.rest.count <= longestURL
        else { return nil }
        var text = schemes[Int(scheme)]
        for byte in cursor.rest {
            if Int(byte) < expansions.count {
                text += expansions[Int(byte)]
            } else if (0x21...0x7E).contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                // Reserved by the specification: not a URL.
                return nil
            }
        }
        return DecodedBeacon(kind: .eddystoneURL, beaconID: text, txPower: Int(power) - firstMetre)
    }

    private static func tlm(_ cursor: inout ByteCursor) -> DecodedBeacon? {
        guard let version = cursor.byte() else { return nil }
        var beacon = DecodedBeacon(kind: .eddystoneTLM)
        // Version 1 is encrypted, so only its version is recorded.
        guard version == 0 else {
            beacon.telemetry.add(.version, scaled: Int64(version))
            return beacon
        }
        guard let battery = cursor.bigEndian(2), let temperature = cursor.signedBigEndian16(),
            let count = cursor.bigEndian(4), let uptime = cursor.bigEndian(4)
        else { return nil }
        if battery != 0 { beacon.telemetry.add(.battery, scaled: Int64(battery)) }
        // 0x8000 (-128 °C) means "not supported".
        if temperature != .min { beacon.telemetry.add(.temperature, Double(temperature) / 256) }
        beacon.telemetry.add(.advertisementCount, scaled: Int64(count))
        beacon.telemetry.add(.uptime, scaled: Int64(uptime))
        return beacon
    }
}
