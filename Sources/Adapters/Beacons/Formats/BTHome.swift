// BTHome v2 (bthome.io/format): service data of UUID 0xFCD2, plain or encrypted.
import Records

/// The encrypted part of a BTHome advertisement.
package struct SealedPayload: Sendable, Equatable {
    /// The device information byte, which is part of the nonce.
    var information: UInt8
    var counter: UInt32
    var ciphertext: [UInt8]
    /// The message integrity check (four bytes).
    var tag: [UInt8]
}

/// Decodes BTHome service data.
package enum BTHome {
    private static let uuid: UInt64 = 0xFCD2
    /// Bits of the device information byte: encrypted, and an address follows.
    private static let isEncrypted: UInt8 = 0x01
    private static let hasAddress: UInt8 = 0x02

    /// Decodes a frame of version 2; leaves an encrypted payload to `BTHomeKeys`.
    package static func decode(_ payload: ArraySlice<UInt8>) -> DecodedBeacon? {
        var cursor = ByteCursor(payload)
        guard cursor.littleEndian(2) == uuid, let information = cursor.byte(),
            information >> 5 == 2
        else { return nil }
        var beacon = DecodedBeacon(kind: .bthome)
        if information & hasAddress != 0 {
            guard let address = cursor.littleEndian(6) else { return nil }
            beacon.device = BluetoothAddress(value: address)
            beacon.beaconID = beacon.device?.description
        }
        if information & isEncrypted != 0 {
            beacon.sealed = sealed(cursor.rest, information)
        } else {
            read(cursor.rest, into: &beacon)
        }
        if beacon.telemetry.isEmpty { beacon.data = Array(payload) }
        return beacon
    }

    private static func sealed(
        _ bytes: ArraySlice<UInt8>,
        _ information: UInt8
    ) -> SealedPayload? {
        guard bytes.count > 8 else { return nil }
        var cursor = ByteCursor(bytes)
        guard let ciphertext = cursor.bytes(bytes.count - 8), let counter = cursor.littleEndian(4)
        else { return nil }
        return SealedPayload(
            information: information,
            counter: UInt32(truncatingIfNeeded: counter),
            ciphertext: Array(ciphertext),
            tag: Array(cursor.rest)
        )
    }

    /// Reads objects up to the first unknown or truncated one; nothing after it can be located.
    static func read(_ objects: ArraySlice<UInt8>, into beacon: inout DecodedBeacon) {
        var cursor = ByteCursor(objects)
        while let id = cursor.byte() {
            // The packet id precedes the readings; of several the last counts, as for other
            // receivers.
            if id == 0, let packet = cursor.rest.first { beacon.mark = .packet(packet) }
            guard let object = BTHomeObject.all[Int(id)],
                read(object, &cursor, &beacon.telemetry)
            else { return }
        }
    }

    /// Reads one object; false if the data ends too early.
    private static func read(
        _ object: BTHomeObject,
        _ cursor: inout ByteCursor,
        _ telemetry: inout Telemetry
    ) -> Bool {
        switch object {
        case .number(let quantity, let length, let isSigned, let factor):
            guard let value = cursor.littleEndian(length) else { return false }
            let unused = 64 - 8 * length
            let signed = Int64(bitPattern: value << unused) >> unused
            telemetry.add(quantity, scaled: (isSigned ? signed : Int64(value)) * factor)
        case .event(let quantity):
            guard let code = cursor.byte() else { return false }
            telemetry.add(quantity, scaled: Int64(code))
        case .dimmer:
            guard let code = cursor.byte(), let steps = cursor.byte() else { return false }
            telemetry.add(.dimmer, scaled: Int64(code))
            telemetry.add(.dimmerSteps, scaled: Int64(steps))
        case .command:
            guard let length = cursor.byte(), let code = cursor.byte(),
                let arguments = cursor.bytes(Int(length & 0x1F))
            else { return false }
            telemetry.add(.command, scaled: Int64(code))
            telemetry.add(.commandArguments, bytes: arguments)
        case .bytes(let quantity):
            guard let length = cursor.byte(), let bytes = cursor.bytes(Int(length)) else {
                return false
            }
            if !bytes.isEmpty { telemetry.add(quantity, bytes: bytes) }
        case .firmware(let parts):
            guard let bytes = cursor.bytes(parts) else { return false }
            let version = bytes.reversed().map(String.init).joined(separator: ".")
            telemetry.add(.firmwareVersion, bytes: Array(version.utf8))
        }
        return true
    }
}
