// Ruuvi's data formats against their published vectors.
import Host
import Queue
import Records
import Testing

import Beacons

@Suite struct RuuviTests {
    private func decode(_ payload: String) -> DecodedBeacon? {
        Advertisement.decode(bytes("1BFF9904" + payload)[...], unknown: false).first
    }

    @Test func published_validData() {
        let beacon = decode("0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F")
        #expect(beacon?.kind == .ruuvi)
        #expect(beacon?.beaconID == "CB:B8:33:4C:88:4F")
        #expect(beacon?.txPower == nil)
        #expect(
            beacon?.telemetry.byKey == [
                "temperature_c": 2430, "humidity_percent": 5349, "pressure_pa": 100_044,
                "acceleration_x_mg": 4, "acceleration_y_mg": -4, "acceleration_z_mg": 1036,
                "tx_power_dbm": 4, "battery_mv": 2977, "movement_counter": 66, "sequence": 205,
            ]
        )
    }

    @Test func published_maximumValues() {
        let beacon = decode("057FFFFFFEFFFE7FFF7FFF7FFFFFDEFEFFFECBB8334C884F")
        // 163.835 °C and 163.835 %, to two decimals.
        #expect(
            beacon?.telemetry.byKey == [
                "temperature_c": 16384, "humidity_percent": 16384, "pressure_pa": 115_534,
                "acceleration_x_mg": 32767, "acceleration_y_mg": 32767,
                "acceleration_z_mg": 32767, "tx_power_dbm": 20, "battery_mv": 3646,
                "movement_counter": 254, "sequence": 65534,
            ]
        )
    }

    @Test func published_minimumValues() {
        let beacon = decode("058001000000008001800180010000000000CBB8334C884F")
        #expect(
            beacon?.telemetry.byKey == [
                "temperature_c": -16384, "humidity_percent": 0, "pressure_pa": 50000,
                "acceleration_x_mg": -32767, "acceleration_y_mg": -32767,
                "acceleration_z_mg": -32767, "tx_power_dbm": -40, "battery_mv": 1600,
                "movement_counter": 0, "sequence": 0,
            ]
        )
    }

    @Test func published_invalidValuesAreAbsent() {
        let beacon = decode("058000FFFFFFFF800080008000FFFFFFFFFFFFFFFFFFFFFF")
        #expect(beacon?.kind == .ruuvi)
        #expect(beacon?.telemetry.isEmpty == true)
        #expect(beacon?.beaconID == nil)
    }

    @Test func halves_roundAwayFromZero_atEveryReading() {
        for raw in Int16.min + 1...Int16.max {
            let word = UInt16(bitPattern: raw)
            let high = String(word >> 8, radix: 16), low = String(word & 255, radix: 16)
            let hex =
                (high.count == 1 ? "0" : "") + high + (low.count == 1 ? "0" : "") + low
            guard word != 0xFFFF else { continue }
            let readings = decode("05\(hex)\(hex)C37C0004FFFC040CAC364200CDCBB8334C884F")?
                .telemetry.byKey
            // Steps of 0.005 °C and 0.0025 %, in hundredths.
            let steps = Int64(raw)
            guard readings?["temperature_c"] == (steps + steps.signum()) / 2,
                readings?["humidity_percent"] == (Int64(word) + 2) / 4
            else {
                Issue.record("raw \(raw): \(String(describing: readings))")
                return
            }
        }
    }

    @Test(arguments: [
        "0712FC5394C37C0004FFFC040CAC364200CDCBB8334C884F", "0612FC", "0512FC", "03291A1E", "E1",
    ])
    func otherFormats_andShortOnes_areUnknown(payload: String) {
        let body = bytes("FF9904" + payload)
        let data = [UInt8(body.count)] + body
        #expect(Advertisement.decode(data[...], unknown: true).map(\.kind) == [.manufacturer])
    }
}

/// The published vectors of the formats beside 5 (docs.ruuvi.com, github.com/ruuvi/ruuvi-sensor-protocols).
@Suite struct RuuviFormatTests {
    private func decode(_ payload: String) -> DecodedBeacon? {
        Ruuvi.decode(bytes("9904" + payload)[...])
    }

    @Test(arguments: [
        ("03291A1ECE1EFC18F94202CA0B53", [2630, 2050, 102_766, -1000, -1726, 714, 2899]),
        ("03FF7F63FFFF7FFF7FFF7FFFFFFF", [12799, 12750, 115_535, 32767, 32767, 32767, 65535]),
        ("0300FF6300008001800180010000", [-12799, 0, 50_000, -32767, -32767, -32767, 0]),
    ])
    func published_format3(payload: String, values: [Int64]) {
        let keys = [
            "temperature_c", "humidity_percent", "pressure_pa", "acceleration_x_mg",
            "acceleration_y_mg", "acceleration_z_mg", "battery_mv",
        ]
        let beacon = decode(payload)
        #expect(beacon?.telemetry.byKey == Dictionary(uniqueKeysWithValues: zip(keys, values)))
        #expect(beacon?.beaconID == nil)
        #expect(beacon?.mark == nil)
    }

    private static let keys6 = [
        "temperature_c", "humidity_percent", "pressure_pa", "pm2_5_ug_m3", "co2_ppm", "voc_index",
        "nox_index", "illuminance_lux", "sequence", "calibrating",
    ]

    @Test(arguments: [
        (
            "06170C5668C79E007000C90501D9FFCD004C884F",
            [2950, 5530, 101_102, 112, 201, 10, 2, 1_302_667, 205, 0]
        ),
        (
            "067FFF9C40FFFE27109C40FAFAFEFFFF074C8F4F",
            [16384, 10000, 115_534, 10000, 40000, 500, 500, 6_553_500, 255, 1]
        ),
        ("0680010000000000000000000000FF00004C884F", [-16384, 0, 50_000, 0, 0, 0, 0, 0, 0, 0]),
    ])
    func published_format6(payload: String, values: [Int64]) {
        let beacon = decode(payload)
        #expect(
            beacon?.telemetry.byKey == Dictionary(uniqueKeysWithValues: zip(Self.keys6, values))
        )
        #expect(beacon?.beaconID == nil)
        #expect(beacon?.mark == .shortSequence(UInt8(values[8])))
    }

    @Test func published_format6_withoutValues() {
        let beacon = decode("068000FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF")
        #expect(beacon?.telemetry.byKey == ["sequence": 255, "calibrating": 1])
    }

    @Test(arguments: [
        (UInt8(0), Int64(0)), (1, 4), (0x10, 101), (0x80, 26_643), (0xFE, 6_553_500),
    ])
    func luminosity_isLogarithmic(code: UInt8, hundredths: Int64) {
        let beacon = decode("06170C5668C79E007000C90501\(hex([code]))FFCD004C884F")
        #expect(beacon?.telemetry.byKey["illuminance_lux"] == hundredths)
    }

    @Test(arguments: [
        (
            "E1170C5668C79E0065007004BD11CA00C90A0213E0ACFFFFFFDECDEE10FFFFFFFFFFCBB8334C884F",
            [2950, 5530, 101_102, 101, 112, 1213, 4554, 201, 20, 4, 1_302_700, 14_601_710, 0]
        ),
        (
            "E17FFF9C40FFFE27102710271027109C40FAFADC28F0FFFFFFFFFFFE3FFFFFFFFFFFCBB8334C884F",
            [
                16384, 10000, 115_534, 10000, 10000, 10000, 10000, 40000, 500, 500, 14_428_400,
                16_777_214, 1,
            ]
        ),
        (
            "E1800100000000000000000000000000000000000000FFFFFF00000000FFFFFFFFFFCBB8334C884F",
            [-16384, 0, 50_000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        ),
    ])
    func published_formatE1(payload: String, values: [Int64]) {
        let keys = [
            "temperature_c", "humidity_percent", "pressure_pa", "pm1_ug_m3", "pm2_5_ug_m3",
            "pm4_ug_m3", "pm10_ug_m3", "co2_ppm", "voc_index", "nox_index", "illuminance_lux",
            "sequence", "calibrating",
        ]
        let beacon = decode(payload)
        #expect(beacon?.telemetry.byKey == Dictionary(uniqueKeysWithValues: zip(keys, values)))
        #expect(beacon?.beaconID == "CB:B8:33:4C:88:4F")
        #expect(beacon?.mark == .longSequence(UInt32(values[11])))
    }

    @Test func published_formatE1_withoutValues() {
        let beacon = decode(
            "E18000FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFFFFFFFFFFFFFFFFFF"
        )
        #expect(beacon?.telemetry.byKey == ["calibrating": 0])
        #expect(beacon?.beaconID == nil)
        #expect(beacon?.mark == nil)
    }
}
