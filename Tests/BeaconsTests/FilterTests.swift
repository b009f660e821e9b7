// Filters by pattern and rate, and the intake that applies both.
import Configuration
import Host
import Queue
import Records
import SourceSupport
import Support
import Synchronization
import Testing

@testable import Beacons

private let phone = BeaconIdentity(
    kind: .iBeacon,
    beaconID: Sample.iBeaconID,
    address: BluetoothAddress(value: 0xC0FF_EE00_0001),
    addressType: .randomStatic,
    txPower: -59
)

@Suite struct FilterTests {
    private func admits(allow: [String] = [], deny: [String] = []) -> Bool {
        BeaconFilter(allow: allow, deny: deny).admits(phone)
    }

    @Test func emptyLists_admitAll() {
        #expect(admits())
    }

    @Test(arguments: [
        "C0:FF:EE:00:00:01", "c0:ff:ee:00:00:01", "C0:FF:EE:*", "*:01", "*", "kind:ibeacon",
        "KIND:iBeacon", "kind:*", "kind:i*n", Sample.iBeaconID, "F7826DA6-*", "*/1/7", "*/7",
        "f7826da6-4fa2-*-*-bc5b71e0893e/*/7", "**", "c0*ee*01",
    ])
    func patterns_thatFit(pattern: String) {
        #expect(admits(allow: [pattern]))
        #expect(!admits(deny: [pattern]))
    }

    @Test(arguments: [
        "C0:FF:EE:00:00:02", "C0:FF:EE", "", "kind:ruuvi", "kind:", "ibeacon", "*/8", "*/1/7/*",
        "C0:FF:EE:00:00:01*x", "kind:ibeacon*x*", "a*", "C0:FF:EE:00:00:0",
    ])
    func patterns_thatDoNotFit(pattern: String) {
        #expect(!admits(allow: [pattern]))
        #expect(admits(deny: [pattern]))
    }

    @Test func deny_wins() {
        #expect(!admits(allow: ["*"], deny: ["kind:ibeacon"]))
        #expect(admits(allow: ["kind:ruuvi", "*/7"], deny: ["kind:ruuvi"]))
    }

    /// Against a plain recursive matcher, on short texts of few letters where all cases occur.
    @Test func matches_agreesWithTheDefinition() {
        func reference(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
            guard let first = pattern.first else { return text.isEmpty }
            let rest = pattern.dropFirst()
            if first == UInt8(ascii: "*") {
                return reference(rest, text)
                    || (!text.isEmpty && reference(pattern, text.dropFirst()))
            }
            return text.first == first && reference(rest, text.dropFirst())
        }
        var generator = SeededRandom(seed: 3)
        var fits = 0
        for _ in 0..<50_000 {
            let pattern = generator.bytes(Int.random(in: 0...6, using: &generator)).map {
                "ab*"[$0]
            }
            let text = generator.bytes(Int.random(in: 0...8, using: &generator)).map { "aab"[$0] }
            let expected = reference(pattern[...], text[...])
            fits += expected ? 1 : 0
            guard BeaconFilter.matches(pattern[...], text[...]) == expected else {
                Issue.record("\(pattern) \(text): should be \(expected)")
                return
            }
        }
        #expect(fits > 1000)
    }
}

extension String {
    /// One of three letters, chosen by a byte of noise.
    fileprivate subscript(byte: UInt8) -> UInt8 { Array(utf8)[Int(byte) % 3] }
}

@Suite struct IntakeTests {
    private let clock = ManualClock(
        Stamp(
            boot: BootInstant(nanoseconds: 50_000_000_000),
            wall: WallTime(milliseconds: 1_795_235_407_000)
        )
    )

    private func report(_ data: [UInt8], address: UInt64 = 0xC0FF_EE00_0001, rssi: Int? = -60)
        -> AdvertisingReport
    {
        AdvertisingReport(
            address: BluetoothAddress(value: address),
            addressType: .randomStatic,
            rssi: rssi,
            data: data[...]
        )
    }

    private func receive(
        _ reports: [AdvertisingReport],
        _ sink: RecordingSink = RecordingSink(),
        _ change: (inout BeaconSettings) -> Void = { _ in }
    ) -> [Sighting] {
        var settings = BeaconSettings()
        settings.maxRate = 1000
        change(&settings)
        var intake = SightingIntake(settings, sink)
        var sightings: [Sighting] = []
        for report in reports { intake.receive(report, at: clock.stamp()) { sightings.append($0) } }
        return sightings
    }

    @Test func sighting_carriesWhatTheReportAndPayloadSay() {
        let sightings = receive([
            report(Sample.iBeacon, rssi: -71), report(Sample.iBeacon, rssi: nil),
        ])
        #expect(
            sightings == [
                Sighting(identity: phone, rssi: -71, stamp: clock.stamp()),
                Sighting(identity: phone, rssi: nil, stamp: clock.stamp()),
            ]
        )
    }

    @Test func idOfPayloadsWithoutOne_isTheAddress() {
        let sightings = receive([report(Sample.eddystoneTLM)])
        #expect(sightings.map(\.identity.beaconID) == ["C0:FF:EE:00:00:01"])
        #expect(sightings.first?.telemetry.byKey["battery_mv"] == 3000)
    }

    @Test func readings_comeOnceAMeasurement_sightingsEachTime() {
        var second = Sample.ruuvi
        second[7 + 17] = 0xCE
        let sightings = receive(
            [Sample.ruuvi, Sample.ruuvi, second, second, second, Sample.ruuvi].map { report($0) }
        )
        #expect(
            sightings.map { $0.telemetry.byKey["sequence"] } == [205, nil, 206, nil, nil, 205]
        )
        #expect(sightings.allSatisfy { $0.rssi == -60 })
    }

    @Test func measurementBeforeARestart_isNotStoredAgain() {
        var second = Sample.ruuvi
        second[7 + 17] = 0xCE
        let before = receive([report(Sample.ruuvi)])
        let after = receive(
            [report(Sample.ruuvi), report(second)],
            RecordingSink(recent: before)
        )
        #expect((before + after).map { $0.telemetry.byKey["sequence"] } == [205, nil, 206])
    }

    @Test func readings_thatTheRateLeftOut_comeWithTheNextRepeat() {
        var settings = BeaconSettings()
        settings.maxRate = 1
        var intake = SightingIntake(settings, RecordingSink())
        var kept: [Int64?] = []
        var second = Sample.ruuvi
        second[7 + 17] = 0xCE
        for (data, pause) in [(Sample.ruuvi, 500), (second, 300), (second, 300), (second, 1000)] {
            intake.receive(report(data), at: clock.stamp()) {
                kept.append($0.telemetry.byKey["sequence"])
            }
            clock.advance(by: .milliseconds(pause))
        }
        #expect(kept == [205, 206])
    }

    @Test func identity_isNoAddressThatChanges() {
        let kinds: [AddressType] = [
            .public, .randomStatic, .randomNonResolvable, .randomResolvable,
        ]
        let ids = kinds.map { kind in
            var report = report(Sample.eddystoneTLM)
            report.addressType = kind
            return receive([report]).first?.identity.beaconID
        }
        let address = "C0:FF:EE:00:00:01"
        #expect(ids == [address, address, "", ""])
    }

    @Test func beaconsWithoutID_areLimitedByTheirAddress() {
        let reports = (0..<20).map { number in
            var report = report(Sample.eddystoneTLM, address: UInt64(number % 10))
            report.addressType = .randomResolvable
            return report
        }
        #expect(receive(reports) { $0.maxRate = 1 }.count == 10)
    }

    private static let device = BluetoothAddress(value: 0x5448_E68F_80A5)
    private static let key = bytes("231d39c1d7cc1ab1aee224cd096db932")
    /// The published example of bthome.io/encryption, and the same with a wrong MIC.
    private static let sealed = bytes("1216D2FC41A47266C95F730011223378237214")
    private static let forged = bytes("1216D2FC41A47266C95F730011223378237215")
    private static let plain = bytes("0A16D2FC4002CA0903BF13")

    private func receiveSealed(_ data: [[UInt8]]) -> (sightings: [Sighting], reported: [String]) {
        let sink = RecordingSink()
        let reports = data.map { report($0, address: Self.device.value) }
        let sightings = receive(reports, sink) { $0.bindkeys = [Self.device: Self.key] }
        return (sightings, sink.all.warnings)
    }

    @Test func encryptedReadings_comeOnceACounter() {
        let (sightings, reported) = receiveSealed([Self.sealed, Self.sealed, Self.sealed])
        #expect(sightings.map { $0.telemetry.byKey["temperature_c"] } == [2506, nil, nil])
        #expect(sightings.allSatisfy { $0.data.isEmpty && $0.identity.kind == .bthome })
        #expect(reported == [])
    }

    /// A thermometer of pvvx's firmware: temperature and humidity, then voltage and power, under one counter.
    @Test func payloadsOfOneCounter_allGiveTheirReadings() {
        let device = BluetoothAddress(value: 0xA4C1_3800_0001)
        let sink = RecordingSink()
        let pair = [
            "0201061416d2fc4176420a0efb0298f0a67a040004be5657",
            "0201061116d2fc417b9201b0fda67a040035ec5813",
            "0201061416d2fc41c6dcd6f92c5fb097a77a0400f9608c38",
            "0201061116d2fc41cb0ddd592aa77a0400652adb00",
        ]
        let reports = (pair + pair).map { report(bytes($0), address: device.value) }
        let sightings = receive(reports, sink) { $0.bindkeys = [device: Self.key] }
        let keys = sightings.map { $0.telemetry.byKey.keys.sorted() }
        let first = [
            ["battery_percent", "humidity_percent", "temperature_c"], ["power_on", "voltage_v"],
        ]
        // The second time round, the first counter is one that was passed.
        #expect(keys.prefix(4).map { Array($0) } == first + first)
        #expect(sightings[1].telemetry.byKey["voltage_v"] == 2530)
        #expect(sink.all.warnings.count == 1)
    }

    @Test func undecodableData_isKept_andReportedOncePerReason() {
        let (sightings, reported) = receiveSealed([
            Self.forged, Self.forged, Self.plain, Self.plain, Self.sealed, Self.forged,
        ])
        #expect(sightings.count == 6)
        #expect(sightings.map { $0.telemetry.isEmpty } == [true, true, true, true, false, true])
        #expect(sightings.first?.data == Array(Self.forged.dropFirst(2)))
        #expect(
            reported == [
                UnreadReason.wrongKey.text(of: Self.device),
                UnreadReason.notEncrypted.text(of: Self.device),
            ]
        )
    }

    @Test func unknownEncryptedData_isKept_butNotReported() {
        let sink = RecordingSink()
        let sightings = receive([report(Self.sealed), report(Self.sealed)], sink)
        #expect(sink.all.warnings == [])
        #expect(sightings.map(\.identity.kind) == [.bthome, .bthome])
        #expect(
            sightings.map(\.data) == Array(repeating: Array(Self.sealed.dropFirst(2)), count: 2)
        )
    }

    @Test func unknown_isKeptOnlyIfWanted() {
        let data = bytes("020106 05FF5900ABCD")
        #expect(receive([report(data)]) == [])
        let kept = receive([report(data)]) { $0.keepsUnknown = true }
        #expect(kept.map(\.identity.kind) == [.manufacturer])
        #expect(kept.map(\.data) == [bytes("5900ABCD")])
        #expect(kept.map(\.identity.beaconID) == ["C0:FF:EE:00:00:01"])
    }

    @Test func lists_areApplied() {
        let reports = [
            report(Sample.iBeacon), report(Sample.ruuvi), report(Sample.iBeacon(minor: 8)),
        ]
        #expect(
            receive(reports) { $0.allow = ["kind:ibeacon"] }.map(\.identity.kind) == [
                .iBeacon, .iBeacon,
            ]
        )
        #expect(receive(reports) { $0.deny = ["*/7", "kind:ruuvi"] }.count == 1)
    }

    @Test func rate_isCountedOnBootTime_notTheWallClock() {
        var settings = BeaconSettings()
        settings.maxRate = 4
        var intake = SightingIntake(settings, RecordingSink())
        var kept = 0
        for tenth in 0..<100 {
            // The wall clock is set back and forth in each round.
            clock.stepWall(to: WallTime(milliseconds: tenth % 2 == 0 ? 0 : 4_000_000_000_000))
            intake.receive(report(Sample.iBeacon), at: clock.stamp()) { _ in kept += 1 }
            clock.advance(by: .milliseconds(100))
        }
        #expect(kept == 40)
    }

    /// Each with as many beacons as fit into the longest advertisement there is.
    @Test func flood_ofLongPayloads_isNotRemembered() {
        let data = (0..<61).flatMap { Sample.iBeacon(minor: UInt16($0)).suffix(27) }
        var intake = SightingIntake(BeaconSettings(), RecordingSink())
        var maximum = 0
        for address in 0..<1000 {
            // Half of them change what they say.
            let report = report(data, address: UInt64(address % 500))
            intake.receive(report, at: clock.stamp()) { _ in }
            maximum = max(maximum, intake.cacheWeight)
        }
        #expect(maximum > 1000)
        #expect(maximum <= SightingIntake.cacheLimit)
    }

    @Test func flood_ofNewAddressesKeepsEverySighting() {
        let reports = (0..<10_000).map { report(Sample.eddystoneTLM, address: UInt64($0)) }
        #expect(receive(reports).count == 10_000)
    }
}
