// RuuviTag data format 5, "RAWv2" (docs.ruuvi.com, data-format-5-rawv2).
internal import Store

/// Manufacturer data of company 0x0499; all big-endian, extreme values mean "not available".
enum Ruuvi {
    static func decode(_ payload: ArraySlice<UInt8>) -> DecodedBeacon? {
        var cursor = ByteCursor(payload)
        guard cursor.littleEndian(2) == 0x0499, cursor.byte() == 5, payload.count >= 26 else {
            return nil
        }
        var beacon = DecodedBeacon(kind: .ruuvi)
        if let value = cursor.signedBigEndian16(), value != .min {
            // Steps of 0.005 °C to hundredths in integers: halves go away from zero, as in `Telemetry`.
            let steps = Int64(value)
            beacon.telemetry.add(.temperature, scaled: (steps + steps.signum()) / 2)
        }
        if let value = cursor.bigEndian(2), value != 0xFFFF {
            // Steps of 0.0025 %; a wet sensor says more than 100 %, which is kept as it came.
            beacon.telemetry.add(.humidity, scaled: (Int64(value) + 2) / 4)
        }
        if let value = cursor.bigEndian(2), value != 0xFFFF {
            beacon.telemetry.add(.pressure, scaled: Int64(value) + 50_000)
        }
        for axis in [Quantity.accelerationX, .accelerationY, .accelerationZ] {
            if let value = cursor.signedBigEndian16(), value != .min {
                beacon.telemetry.add(axis, scaled: Int64(value))
            }
        }
        addPower(&cursor, to: &beacon.telemetry)
        if let value = cursor.byte(), value != 0xFF {
            beacon.telemetry.add(.movementCounter, scaled: Int64(value))
        }
        if let value = cursor.bigEndian(2), value != 0xFFFF {
            beacon.telemetry.add(.sequence, scaled: Int64(value))
        }
        if let mac = cursor.bigEndian(6), mac != 0xFFFF_FFFF_FFFF {
            beacon.beaconID = BluetoothAddress(value: mac).description
        }
        return beacon
    }

    /// 11 bits of mV above 1600, 5 bits of 2 dBm above -40.
    private static func addPower(_ cursor: inout ByteCursor, to telemetry: inout Telemetry) {
        guard let value = cursor.bigEndian(2) else { return }
        if value >> 5 != 0x7FF { telemetry.add(.battery, scaled: Int64(value >> 5) + 1600) }
        if value & 0x1F != 0x1F {
            telemetry.add(.transmitPower, scaled: Int64(value & 0x1F) * 2 - 40)
        }
    }
}
