// HCI events to advertising reports: both kinds, several in one, in pieces, and damaged.
import Host
import Queue
import Records
import Support
import Testing

@testable import Beacons

@Suite struct ReportTests {
    @Test func legacy_givesAddressPowerAndData() {
        var parser = ReportParser()
        let event = Event.legacy(
            Event.legacyReport(Sample.iBeacon, from: 0xC0FF_EE00_0001, rssi: -71)
        )
        let reports = parser.parse(event[...])
        #expect(reports.count == 1)
        #expect(reports.first?.address.description == "C0:FF:EE:00:00:01")
        #expect(reports.first?.addressType == .randomStatic)
        #expect(reports.first?.rssi == -71)
        #expect(reports.first?.data.elementsEqual(Sample.iBeacon) == true)
    }

    @Test func extended_givesAddressPowerAndData() {
        var parser = ReportParser()
        let event = Event.extended(
            Event.extendedReport(Sample.ruuvi, from: 0x1234_5678_9ABC, rssi: -20)
        )
        let reports = parser.parse(event[...])
        #expect(reports.map(\.address.description) == ["12:34:56:78:9A:BC"])
        #expect(reports.first?.rssi == -20)
        #expect(reports.first?.data.elementsEqual(Sample.ruuvi) == true)
    }

    @Test func several_reportsOfAnEventComeInOrder() {
        var parser = ReportParser()
        let legacy = Event.legacy(
            Event.legacyReport(Sample.iBeacon, from: 1),
            Event.legacyReport([], from: 2),
            Event.legacyReport(Sample.ruuvi, from: 3)
        )
        #expect(parser.parse(legacy[...]).map(\.address.value) == [1, 2, 3])
        let extended = Event.extended(
            Event.extendedReport(Sample.iBeacon, from: 4),
            Event.extendedReport([], from: 5)
        )
        #expect(parser.parse(extended[...]).map(\.address.value) == [4, 5])
        #expect(parser.malformed == 0)
    }

    @Test(arguments: [
        (0, 0xC0FF_EE00_0001, AddressType.public), (2, 0xC0FF_EE00_0001, .public),
        (1, 0xC0FF_EE00_0001, .randomStatic), (3, 0xFFFF_EE00_0001, .randomStatic),
        (1, 0x7FFF_EE00_0001, .randomResolvable), (1, 0x3FFF_EE00_0001, .randomNonResolvable),
    ])
    func addressType_isReadFromTypeAndTopBits(type: UInt8, address: UInt64, expected: AddressType) {
        var parser = ReportParser()
        let event = Event.legacy(Event.legacyReport([], from: address, type: type))
        #expect(parser.parse(event[...]).first?.addressType == expected)
    }

    @Test func rssi127_isUnknown() {
        var parser = ReportParser()
        let event = Event.legacy(Event.legacyReport([], rssi: 127))
        let reports = parser.parse(event[...])
        #expect(reports.count == 1)
        #expect(reports.first?.rssi == nil)
    }

    @Test func otherEvents_giveNothing() {
        var parser = ReportParser()
        for event in ["0E0401030C00", "3E0101", "3E03010203", "100142", "", "3E"] {
            #expect(parser.parse(bytes(event)[...]) == [])
        }
    }

    @Test func cutShort_isCountedAndKeepsWhatCameBefore() {
        var parser = ReportParser()
        var event = Event.legacy(
            Event.legacyReport(Sample.iBeacon, from: 1),
            Event.legacyReport(Sample.ruuvi, from: 2)
        )
        event.removeLast(4)
        event[1] -= 4
        #expect(parser.parse(event[...]).map(\.address.value) == [1])
        #expect(parser.malformed == 1)
    }

    @Test func shorterThanItsLengthSays_isCounted() {
        var parser = ReportParser()
        let event = Event.legacy(Event.legacyReport(Sample.iBeacon))
        #expect(parser.parse(event.dropLast(3)) == [])
        #expect(parser.malformed == 1)
    }
}

@Suite struct FragmentTests {
    private let long = Array(repeating: [3, 0xFF, 0x59, 0x00] as [UInt8], count: 100).flatMap { $0 }

    private func pieces(of data: [UInt8], from address: UInt64 = 1, set: UInt8 = 1) -> [[UInt8]] {
        let cuts = stride(from: 0, to: data.count, by: 200).map {
            data[$0..<min($0 + 200, data.count)]
        }
        return cuts.enumerated().map { index, piece in
            Event.extended(
                Event.extendedReport(
                    Array(piece),
                    from: address,
                    set: set,
                    status: index < cuts.count - 1 ? 1 : 0
                )
            )
        }
    }

    @Test func pieces_arePutTogether() {
        var parser = ReportParser()
        let reports = pieces(of: long).flatMap { parser.parse($0[...]) }
        #expect(reports.count == 1)
        #expect(reports.first?.data.elementsEqual(long) == true)
    }

    @Test func pieces_ofTwoAdvertisersAndTwoSetsDoNotMix() {
        var parser = ReportParser()
        let other = long.reversed() as [UInt8]
        let streams = [
            pieces(of: long, from: 1, set: 1), pieces(of: other, from: 1, set: 2),
            pieces(of: other, from: 2, set: 1),
        ]
        var reports: [AdvertisingReport] = []
        for index in 0..<2 {
            for stream in streams { reports += parser.parse(stream[index][...]) }
        }
        #expect(reports.map { Array($0.data) } == [long, other, other])
    }

    @Test func cutShortByTheController_givesWhatThereIs() {
        var parser = ReportParser()
        let first = Event.extended(Event.extendedReport(Sample.iBeacon, status: 1))
        let second = Event.extended(Event.extendedReport([0x1B, 0xFF, 0x99], status: 2))
        #expect(parser.parse(first[...]) == [])
        let reports = parser.parse(second[...])
        #expect(reports.map { Array($0.data) } == [Sample.iBeacon + [0x1B, 0xFF, 0x99]])
    }

    /// The tail of abandoned data must not be read as data of its own.
    @Test func overlong_isCountedAndGivenUpToItsEnd() {
        var parser = ReportParser()
        let piece = Event.extended(Event.extendedReport(Array(long.prefix(200)), status: 1))
        for _ in 0..<10 { #expect(parser.parse(piece[...]) == []) }
        let last = Event.extended(Event.extendedReport(Sample.iBeacon))
        #expect(parser.parse(last[...]) == [])
        #expect(parser.malformed == 1)
        // The next report is complete again.
        #expect(parser.parse(last[...]).count == 1)
    }

    /// A flood of advertisers that never finish costs bounded memory, and each loss is counted.
    @Test func flood_givesUpTheOldest() {
        var parser = ReportParser()
        let piece = { (address: UInt64) in
            Event.extended(Event.extendedReport(Sample.iBeacon, from: address, status: 1))
        }
        for address in 0..<1000 as Range<UInt64> {
            #expect(parser.parse(piece(address)[...]) == [])
        }
        #expect(parser.malformed == 1000 - ReportParser.fragmentLimit)
        let last = Event.extended(Event.extendedReport([0, 0], from: 999))
        #expect(parser.parse(last[...]).map { Array($0.data) } == [Sample.iBeacon + [0, 0]])
    }
}

@Suite struct EventFuzzTests {
    /// Reports with bytes changed, cut off and put in, and noise: never a trap.
    @Test func parse_isTotal() {
        var generator = SeededRandom(seed: 7)
        var parser = ReportParser()
        let seeds = [
            Event.legacy(Event.legacyReport(Sample.iBeacon), Event.legacyReport(Sample.ruuvi)),
            Event.extended(
                Event.extendedReport(Sample.iBeacon),
                Event.extendedReport(Sample.ruuvi)
            ),
            Event.extended(Event.extendedReport(Sample.iBeacon, status: 1)),
        ]
        var heard = 0
        for round in 0..<100_000 {
            var event = seeds[round % seeds.count]
            switch round / seeds.count % 4 {
            case 0:
                event =
                    [0x3E, UInt8(truncatingIfNeeded: generator.next()), round % 2 == 0 ? 2 : 13]
                    + generator.bytes(Int.random(in: 0...80, using: &generator))
            case 1: event = Array(event.prefix(Int.random(in: 0...event.count, using: &generator)))
            case 2:
                event[Int.random(in: 0..<event.count, using: &generator)] = UInt8(
                    truncatingIfNeeded: generator.next()
                )
            default:
                event.insert(
                    contentsOf: generator.bytes(3),
                    at: Int.random(in: 0...event.count, using: &generator)
                )
            }
            let reports = parser.parse(event[...])
            for report in reports { _ = Advertisement.decode(report.data, unknown: true) }
            heard += reports.count
        }
        #expect(heard > 1000)
        #expect(parser.malformed > 1000)
    }

    /// Pieces whose end never came must not be put before those of another report.
    @Test func oldPieces_areGivenUpAndCounted() {
        var parser = ReportParser()
        let seconds = { BootInstant(nanoseconds: $0 * 1_000_000_000) }
        let first = Event.extended(Event.extendedReport([1, 2, 3], status: 1))
        let last = Event.extended(Event.extendedReport(Sample.iBeacon))
        #expect(parser.parse(first[...], at: seconds(10)) == [])
        #expect(
            parser.parse(last[...], at: seconds(14)).first?.data.count == Sample.iBeacon.count + 3
        )
        #expect(parser.malformed == 0)
        #expect(parser.parse(first[...], at: seconds(20)) == [])
        let late = parser.parse(last[...], at: seconds(25))
        #expect(late.first?.data.elementsEqual(Sample.iBeacon) == true)
        #expect(parser.malformed == 1)
    }

    @Test func reportCutShortByTheController_isKeptAndCounted() {
        var parser = ReportParser()
        let event = Event.extended(Event.extendedReport(Sample.iBeacon, status: 2))
        #expect(parser.parse(event[...]).first?.data.elementsEqual(Sample.iBeacon) == true)
        #expect(parser.truncated == 1)
        #expect(parser.malformed == 0)
    }
}
