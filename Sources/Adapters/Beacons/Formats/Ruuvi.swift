// Decodes Ruuvi's data formats 3, 5, 6 and E1 (docs.ruuvi.com, Bluetooth advertisements).
import Glibc
import Records

/// Decodes manufacturer data of company 0x0499; all big-endian, extreme values mean "not
/// available".
package enum Ruuvi {
    /// Payload lengths by format, which is the first byte.
    static let lengths: [UInt8: Int] = [3: 14, 5: 24, 6: 20, 0xE1: 40]

    package static func decode(_ payload: ArraySlice<UInt8>) -> DecodedBeacon? {
        var cursor = ByteCursor(payload)
        guard cursor.littleEndian(2) == 0x0499, let format = cursor.rest.first,
            let length = lengths[format], cursor.rest.count >= length
        else { return nil }
        cursor = ByteCursor(cursor.rest.dropFirst())
        var beacon = DecodedBeacon(kind: .ruuvi)
        switch format {
        case 3: format3(&cursor, &beacon.telemetry)
        case 5: format5(&cursor, &beacon)
        case 6: format6(&cursor, &beacon)
        default: formatE1(&cursor, &beacon)
        }
        return beacon
    }

    /// RAWv1: has neither a "not available" value nor a measurement number.
    private static func format3(_ cursor: inout ByteCursor, _ telemetry: inout Telemetry) {
        // Steps of 0.5 %; a sign bit and whole degrees, then hundredths.
        guard let humidity = cursor.byte(), let whole = cursor.byte(), let part = cursor.byte(),
            let pressure = cursor.bigEndian(2)
        else { return }
        let temperature = Int64(whole & 0x7F) * 100 + Int64(part)
        telemetry.add(.temperature, scaled: whole & 0x80 == 0 ? temperature : -temperature)
        telemetry.add(.humidity, scaled: Int64(humidity) * 50)
        telemetry.add(.pressure, scaled: Int64(pressure) + 50_000)
        for axis in [Quantity.accelerationX, .accelerationY, .accelerationZ] {
            if let value = cursor.signedBigEndian16() { telemetry.add(axis, scaled: Int64(value)) }
        }
        if let value = cursor.bigEndian(2) { telemetry.add(.battery, scaled: Int64(value)) }
    }

    /// RAWv2, sent by RuuviTags.
    private static func format5(_ cursor: inout ByteCursor, _ beacon: inout DecodedBeacon) {
        addClimate(&cursor, to: &beacon.telemetry)
        for axis in [Quantity.accelerationX, .accelerationY, .accelerationZ] {
            if let value = cursor.signedBigEndian16(), value != .min {
                beacon.telemetry.add(axis, scaled: Int64(value))
            }
        }
        addPower(&cursor, to: &beacon.telemetry)
        add(.movementCounter, 1, &cursor, to: &beacon.telemetry)
        if let value = add(.sequence, 2, &cursor, to: &beacon.telemetry) {
            beacon.mark = .sequence(UInt16(truncatingIfNeeded: value))
        }
        setDevice(&cursor, &beacon)
    }

    /// Sent by Ruuvi Air for receivers with legacy advertising only.
    private static func format6(_ cursor: inout ByteCursor, _ beacon: inout DecodedBeacon) {
        addClimate(&cursor, to: &beacon.telemetry)
        add(.pm2_5, 2, &cursor, to: &beacon.telemetry)
        add(.co2, 2, &cursor, to: &beacon.telemetry)
        guard let voc = cursor.byte(), let nox = cursor.byte(), let light = cursor.byte(),
            cursor.byte() != nil, let sequence = cursor.byte(), let flags = cursor.byte()
        else { return }
        addIndexes(voc, nox, flags, to: &beacon.telemetry)
        if light != 0xFF {
            // Logarithmic: code 254 is 65535 lx.
            let value = exp(Double(light) * log(65536) / 254) - 1
            beacon.telemetry.add(.illuminance, value)
        }
        beacon.telemetry.add(.sequence, scaled: Int64(sequence))
        beacon.telemetry.add(.isCalibrating, scaled: Int64(flags & 1))
        beacon.mark = .shortSequence(sequence)
    }

    /// Sent by Ruuvi Air in extended advertising.
    private static func formatE1(_ cursor: inout ByteCursor, _ beacon: inout DecodedBeacon) {
        addClimate(&cursor, to: &beacon.telemetry)
        for quantity in [Quantity.pm1, .pm2_5, .pm4, .pm10, .co2] {
            add(quantity, 2, &cursor, to: &beacon.telemetry)
        }
        guard let voc = cursor.byte(), let nox = cursor.byte(), let light = cursor.bigEndian(3),
            cursor.bytes(3) != nil, let sequence = cursor.bigEndian(3), let flags = cursor.byte(),
            cursor.bytes(5) != nil
        else { return }
        addIndexes(voc, nox, flags, to: &beacon.telemetry)
        if light != 0xFF_FFFF { beacon.telemetry.add(.illuminance, scaled: Int64(light)) }
        if sequence != 0xFF_FFFF {
            beacon.telemetry.add(.sequence, scaled: Int64(sequence))
            beacon.mark = .longSequence(UInt32(truncatingIfNeeded: sequence))
        }
        beacon.telemetry.add(.isCalibrating, scaled: Int64(flags & 1))
        setDevice(&cursor, &beacon)
    }

    /// Temperature, humidity and pressure, the same in all formats but 3.
    private static func addClimate(_ cursor: inout ByteCursor, to telemetry: inout Telemetry) {
        if let value = cursor.signedBigEndian16(), value != .min {
            // Steps of 0.005 °C to hundredths in integers; halves round away from zero, as in
            // `Telemetry`.
            let steps = Int64(value)
            telemetry.add(.temperature, scaled: (steps + steps.signum()) / 2)
        }
        if let value = cursor.bigEndian(2), value != 0xFFFF {
            // Steps of 0.0025 %; a wet sensor reports more than 100 %, stored unchanged.
            telemetry.add(.humidity, scaled: (Int64(value) + 2) / 4)
        }
        if let value = cursor.bigEndian(2), value != 0xFFFF {
            telemetry.add(.pressure, scaled: Int64(value) + 50_000)
        }
    }

    /// Adds an unsigned number in the quantity's steps; all bits set means "not available".
    @discardableResult
    private static func add(
        _ quantity: Quantity,
        _ length: Int,
        _ cursor: inout ByteCursor,
        to telemetry: inout Telemetry
    ) -> UInt64? {
        guard let value = cursor.bigEndian(length), value != (1 << (8 * length)) - 1 else {
            return nil
        }
        telemetry.add(quantity, scaled: Int64(value))
        return value
    }

    /// Adds the VOC and NOx indexes: nine bits each, whose lowest are bits 6 and 7 of the flags.
    private static func addIndexes(
        _ voc: UInt8,
        _ nox: UInt8,
        _ flags: UInt8,
        to telemetry: inout Telemetry
    ) {
        let vocIndex = Int64(voc) << 1 | Int64(flags >> 6 & 1)
        let noxIndex = Int64(nox) << 1 | Int64(flags >> 7)
        if vocIndex != 0x1FF { telemetry.add(.vocIndex, scaled: vocIndex) }
        if noxIndex != 0x1FF { telemetry.add(.noxIndex, scaled: noxIndex) }
    }

    /// Adds battery (11 bits, mV above 1600) and transmit power (5 bits, 2 dBm steps above -40).
    private static func addPower(_ cursor: inout ByteCursor, to telemetry: inout Telemetry) {
        guard let value = cursor.bigEndian(2) else { return }
        if value >> 5 != 0x7FF { telemetry.add(.battery, scaled: Int64(value >> 5) + 1600) }
        if value & 0x1F != 0x1F {
            telemetry.add(.transmitPower, scaled: Int64(value & 0x1F) * 2 - 40)
        }
    }

    private static func setDevice(_ cursor: inout ByteCursor, _ beacon: inout DecodedBeacon) {
        guard let address = cursor.bigEndian(6), address != 0xFFFF_FFFF_FFFF else { return }
        beacon.device = BluetoothAddress(value: address)
        beacon.beaconID = beacon.device?.description
    }
}
