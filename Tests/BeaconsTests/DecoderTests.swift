// Each decoder against its publisher's vectors and tables, and against damage.
import Host
import Queue
import Records
import Support
import Testing

import Beacons

private func decode(_ hex: String, unknown: Bool = false) -> [DecodedBeacon] {
    Advertisement.decode(bytes(hex)[...], unknown: unknown)
}

@Suite struct DecoderTests {
    @Test func iBeacon_givesUUIDMajorMinorAndPower() {
        let beacons = decode("020106 1AFF4C000215 F7826DA64FA24E988024BC5B71E0893E 0102 FFFE C5")
        #expect(beacons.count == 1)
        #expect(beacons.first?.kind == .iBeacon)
        #expect(beacons.first?.beaconID == "f7826da6-4fa2-4e98-8024-bc5b71e0893e/258/65534")
        #expect(beacons.first?.txPower == -59)
        #expect(beacons.first?.data == [])
    }

    @Test(arguments: [
        "07FF4C0010020B00",  // Apple, another type
        "19FF4C000215 F7826DA64FA24E988024BC5B71E0893E 0102 FFFE",  // a byte short
        "1AFF4D000215 F7826DA64FA24E988024BC5B71E0893E 0102 FFFE C5",  // another company
        "1AFF4C000216 F7826DA64FA24E988024BC5B71E0893E 0102 FFFE C5",  // another length
    ])
    func iBeacon_isRefusedWhenCutShortOrNotOne(hex: String) {
        #expect(decode(hex) == [])
        #expect(decode(hex, unknown: true).map(\.kind) == [.manufacturer])
    }

    @Test func altBeacon_givesIDInTwoPartsAndPower() {
        let beacons = decode(
            "1BFF1801BEAC 00112233445566778899AABBCCDDEEFF 01020304 C3 00"
        )
        #expect(beacons.map(\.kind) == [.altBeacon])
        #expect(beacons.first?.beaconID == "00112233445566778899aabbccddeeff/01020304")
        #expect(beacons.first?.txPower == -61)
    }

    @Test func altBeacon_isRefusedWithAnotherCodeOrCutShort() {
        #expect(decode("1BFF1801BEAD 00112233445566778899AABBCCDDEEFF 01020304 C3 00") == [])
        #expect(decode("19FF1801BEAC 00112233445566778899AABBCCDDEEFF 01020304") == [])
    }

    /// Advertisers that write more into their AD structure than the format needs, or less where it is reserved.
    @Test(arguments: [
        (
            "0201041BFF4C000215F7826DA64FA24E988024BC5B71E0893E00010001BB4E",
            "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/1", -69
        ),
        (
            "02011A1AFF1801BEAC2F234454CF6D4A0FADF2F4911BA9FFA600010002C5",
            "2f234454cf6d4a0fadf2f4911ba9ffa6/00010002", -59
        ),
        (
            "1DFF1801BEAC2F234454CF6D4A0FADF2F4911BA9FFA600010002C5001122",
            "2f234454cf6d4a0fadf2f4911ba9ffa6/00010002", -59
        ),
        (
            "1816AAFE00EE00112233445566778899AABBCCDDEEFF0000AA",
            "00112233445566778899/aabbccddeeff", -59
        ),
        ("0F16AAFE30EE00112233445566778899", "0011223344556677", -59),
    ])
    func beacon_isDecoded_fromLongerOrShorterStructure(
        hex: String,
        id: String,
        power: Int
    ) {
        let beacons = decode(hex, unknown: true)
        #expect(beacons.map(\.beaconID) == [id])
        #expect(beacons.map(\.txPower) == [power])
    }

    @Test(arguments: [
        "1316AAFE 2000 0BB8 1580 00000102 00000E10 AABB",
        "12FF9904 03 29 1A1E CE1E FC18 F942 02CA 0B53 AA", "0E16D2FC 40 0009 02CA09 03BF13 FFAA",
    ])
    func readings_areThoseBeforeTrailingBytes(hex: String) {
        let longer = decode(hex)
        let digits = hex.filter { !$0.isWhitespace }
        // The same without its last byte, or two.
        let count = digits.hasPrefix("12") ? 1 : 2
        var exact = bytes(digits).dropLast(count)
        exact[0] -= UInt8(count)
        #expect(longer.count == 1)
        #expect(longer.first?.telemetry.byKey.isEmpty == false)
        #expect(longer == Advertisement.decode(Array(exact)[...], unknown: false))
    }

    @Test(arguments: [
        "1716AAFE00EE001122334455667788 99AABBCCDDEEFF 0000",
        "1516AAFE00EE00112233445566778899AABBCCDDEEFF",
    ])
    func eddystoneUID_isDecoded_withOrWithoutReservedBytes(hex: String) {
        let beacons = decode("0303AAFE" + hex)
        #expect(beacons.map(\.kind) == [.eddystoneUID])
        #expect(beacons.first?.beaconID == "00112233445566778899/aabbccddeeff")
        // -18 dBm at 0 m is -59 dBm at 1 m.
        #expect(beacons.first?.txPower == -59)
    }

    @Test(arguments: [
        ("0616AAFE10EE00", "http://www."),
        ("0B16AAFE10EE03 676F6F2E07", "https://goo..com"),
        ("0A16AAFE10EE02 65666701", "http://efg.org/"),
        ("0916AAFE10EE01 61620D", "https://www.ab.gov"),
    ])
    func eddystoneURL_isExpanded(hex: String, url: String) {
        let beacons = decode(hex)
        #expect(beacons.map(\.kind) == [.eddystoneURL])
        #expect(beacons.first?.beaconID == url)
        #expect(beacons.first?.txPower == -59)
    }

    /// Extended advertising has room for ids of two thousand letters.
    @Test func eddystoneURL_longerThanThereIs_isNone() {
        let url = [UInt8](repeating: 0, count: 18)
        let frame = bytes("16AAFE10EE00") + url
        let data = [UInt8(frame.count)] + frame
        #expect(Advertisement.decode(data[...], unknown: false) == [])
        let longest = [UInt8(frame.count - 1)] + frame.dropLast()
        #expect(Advertisement.decode(longest[...], unknown: false).count == 1)
    }

    @Test func eddystoneURL_expandsEachCodeOfTheTable() {
        let table = [
            ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/",
            ".com", ".org", ".edu", ".net", ".info", ".biz", ".gov",
        ]
        for (code, text) in table.enumerated() {
            let data = bytes("0716AAFE10EE03") + [UInt8(code)]
            #expect(
                Advertisement.decode(data[...], unknown: false).first?.beaconID == "https://" + text
            )
        }
    }

    @Test(arguments: [
        "0616AAFE10EE04", "0716AAFE10EE000E", "0716AAFE10EE0020", "0716AAFE10EE007F",
        "0516AAFE10EE",
    ])
    func eddystoneURL_isRefusedWithReservedCodes(hex: String) {
        #expect(decode(hex) == [])
        #expect(decode(hex, unknown: true).map(\.kind) == [.service])
    }

    @Test func eddystoneTLM_givesReadingsAndNoID() {
        let beacons = decode("1116AAFE 2000 0BB8 1580 00000102 00000E10")
        #expect(beacons.map(\.kind) == [.eddystoneTLM])
        #expect(beacons.first?.beaconID == nil)
        #expect(beacons.first?.txPower == nil)
        #expect(
            beacons.first?.telemetry.byKey == [
                "battery_mv": 3000, "temperature_c": 2150, "advertisement_count": 258,
                "uptime_s": 3600,
            ]
        )
    }

    @Test func eddystoneTLM_leavesOutWhatIsNotSupported() {
        let beacons = decode("1116AAFE 2000 0000 8000 FFFFFFFF FFFFFFFF")
        #expect(
            beacons.first?.telemetry.byKey == [
                "advertisement_count": 4_294_967_295, "uptime_s": 4_294_967_295,
            ]
        )
    }

    @Test func eddystoneTLM_belowZeroIsSigned() {
        let beacons = decode("1116AAFE 2000 0BB8 FE80 00000000 00000000")
        #expect(beacons.first?.telemetry.byKey["temperature_c"] == -150)
    }

    @Test func eddystoneEID_givesEightBytes() {
        let beacons = decode("0D16AAFE30EE 0011223344556677")
        #expect(beacons.map(\.kind) == [.eddystoneEID])
        #expect(beacons.first?.beaconID == "0011223344556677")
        #expect(beacons.first?.txPower == -59)
    }

    @Test(arguments: [
        "0416AAFE00", "1416AAFE00EE0011223344556677889900112233", "0C16AAFE30EE00112233445566",
        "1016AAFE20000BB8158000000102 00000E", "0516AAFE40EE",
    ])
    func eddystone_isRefusedWhenCutShortOrUnknown(hex: String) {
        #expect(decode(hex) == [])
    }

    @Test func several_comeInTheirOrder() {
        let data = Sample.eddystoneUID.dropFirst(3) + Sample.ruuvi + Sample.iBeacon
        #expect(
            Advertisement.decode(Array(data)[...], unknown: true).map(\.kind) == [
                .eddystoneUID, .ruuvi, .iBeacon,
            ]
        )
    }

    @Test func unknownData_keepsItsCompanyOrUUID() {
        let hex =
            "020106 05FF5900ABCD 0516D3FC4001 0720 01020304 AABB 1321 000102030405060708090A0B0C0D0E0F 77AA"
        let beacons = decode(hex, unknown: true)
        #expect(beacons.map(\.kind) == [.manufacturer, .service, .service, .service])
        #expect(
            beacons.map(\.data) == [
                bytes("5900ABCD"), bytes("D3FC4001"), bytes("01020304AABB"),
                bytes("000102030405060708090A0B0C0D0E0F77AA"),
            ]
        )
        #expect(beacons.allSatisfy { $0.beaconID == nil })
        #expect(decode(hex) == [])
    }

    @Test(arguments: [
        "", "00", "FF", "02", "0201", "1AFF4C000215", "0001FF", "01FF", "02FF59", "0216AA",
        "04200102 03",
    ])
    func damaged_givesNothing(hex: String) {
        #expect(decode(hex, unknown: true) == [])
    }

    @Test func damaged_keepsWhatCameBefore() {
        let data = Sample.iBeacon + [0x1B, 0xFF, 0x99, 0x04, 0x05]
        #expect(Advertisement.decode(data[...], unknown: true).map(\.kind) == [.iBeacon])
    }
}

@Suite struct DecoderFuzzTests {
    /// Beacons with bytes changed, cut off and put in, and pure noise: never a trap, and nothing more
    /// than the data can hold.
    @Test func decode_isTotal() {
        var generator = SeededRandom(seed: 20_261_121)
        let seeds = [
            Sample.iBeacon, Sample.ruuvi, Sample.eddystoneUID, Sample.eddystoneTLM,
            bytes("0E16D2FC40000902CA095302C3A93A01"),
            bytes("1216D2FC41A47266C95F730011223378237214"),
            bytes("17FF990406170C5668C79E007000C90501D9FFCD004C884F"),
            bytes("11FF990403291A1ECE1EFC18F94202CA0B53"),
        ]
        var recognised = 0
        for round in 0..<100_000 {
            var data = seeds[round % seeds.count]
            switch round / seeds.count % 4 {
            case 0: data = generator.bytes(Int.random(in: 0...64, using: &generator))
            case 1: data = Array(data.prefix(Int.random(in: 0...data.count, using: &generator)))
            case 2:
                data[Int.random(in: 0..<data.count, using: &generator)] = UInt8(
                    truncatingIfNeeded: generator.next()
                )
            default:
                data.insert(
                    contentsOf: generator.bytes(3),
                    at: Int.random(in: 0...data.count, using: &generator)
                )
            }
            let beacons = Advertisement.decode(data[...], unknown: true)
            recognised += beacons.count
            guard beacons.count <= data.count / 2,
                beacons.allSatisfy({ Telemetry(packed: $0.telemetry.packed) != nil })
            else {
                Issue.record("\(hex(data)): \(beacons)")
                return
            }
        }
        #expect(recognised > 1000)
    }
}
