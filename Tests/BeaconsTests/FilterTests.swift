// What is kept: patterns, rates, and the intake that applies both.
import Host
import Store
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
        var generator = SeededGenerator(state: 3)
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

@Suite struct RateLimitTests {
    private func identity(_ number: Int, address: UInt64 = 1) -> BeaconIdentity {
        BeaconIdentity(
            kind: .ruuvi,
            beaconID: "\(number)",
            address: BluetoothAddress(value: address),
            addressType: .randomStatic
        )
    }

    private func at(_ milliseconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: milliseconds * 1_000_000)
    }

    @Test(arguments: [
        (4.0, 4, 1000), (0.5, 1, 2000), (2.5, 3, 1200), (1.0, 1, 1000), (10, 10, 1000),
    ])
    func rate_holdsInAnyStretch(rate: Double, count: Int, stretch: Int64) {
        var limit = RateLimit(rate: rate)
        var generator = SeededGenerator(state: 11)
        var kept: [Int64] = []
        var now: Int64 = 5000
        while now < 65_000 {
            if limit.admits(identity(1), at: at(now)) { kept.append(now) }
            now += Int64.random(in: 1...60, using: &generator)
        }
        for index in kept.indices.dropFirst(count) {
            #expect(kept[index] - kept[index - count] >= stretch)
        }
        // Nor much less than allowed: 60 s of it, heard every 30 ms on average.
        #expect(Double(kept.count) > rate * 60 * 0.9)
    }

    @Test func beacons_countApart_butOneIDOnNewAddressesDoesNot() {
        var limit = RateLimit(rate: 1)
        #expect(limit.admits(identity(1), at: at(0)) == true)
        #expect(limit.admits(identity(2), at: at(0)) == true)
        #expect(limit.admits(identity(1, address: 99), at: at(10)) == false)
        var other = identity(1)
        other.kind = .eddystoneTLM
        #expect(limit.admits(other, at: at(10)) == true)
        #expect(limit.admits(identity(1), at: at(1000)) == true)
    }

    @Test func flood_staysBounded_andForgetsTheQuietFirst() {
        var limit = RateLimit(rate: 1)
        for number in 0..<RateLimit.limit - 1 {
            #expect(limit.admits(identity(number), at: at(0)) == true)
        }
        #expect(limit.admits(identity(-1), at: at(1500)) == true)
        // Full: the quiet ones go, the one just heard stays limited.
        #expect(limit.admits(identity(-2), at: at(1600)) == true)
        #expect(limit.admits(identity(-1), at: at(1700)) == false)
    }
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

    private func take(
        _ reports: [AdvertisingReport],
        _ change: (inout BeaconSettings) -> Void = { _ in }
    ) -> [Sighting] {
        var settings = BeaconSettings(origin: .adapter(0))
        settings.maxRate = 1000
        change(&settings)
        var intake = SightingIntake(settings)
        var sightings: [Sighting] = []
        for report in reports { intake.take(report, at: clock.stamp()) { sightings.append($0) } }
        return sightings
    }

    @Test func sighting_carriesWhatTheReportAndPayloadSay() {
        let sightings = take([report(Sample.iBeacon, rssi: -71), report(Sample.iBeacon, rssi: nil)])
        #expect(
            sightings == [
                Sighting(identity: phone, rssi: -71, stamp: clock.stamp()),
                Sighting(identity: phone, rssi: nil, stamp: clock.stamp()),
            ]
        )
    }

    @Test func idOfPayloadsWithoutOne_isTheAddress() {
        let sightings = take([report(Sample.eddystoneTLM)])
        #expect(sightings.map(\.identity.beaconID) == ["C0:FF:EE:00:00:01"])
        #expect(sightings.first?.telemetry.byKey["battery_mv"] == 3000)
    }

    @Test func readings_areThoseOfEachAdvertisement() {
        var second = Sample.ruuvi
        second[7 + 17] = 0xCE
        let sightings = take([report(Sample.ruuvi), report(second), report(Sample.ruuvi)])
        #expect(sightings.map { $0.telemetry.byKey["sequence"] } == [205, 206, 205])
    }

    @Test func unknown_isKeptOnlyIfWanted() {
        let data = bytes("020106 05FF5900ABCD")
        #expect(take([report(data)]) == [])
        let kept = take([report(data)]) { $0.keepsUnknown = true }
        #expect(kept.map(\.identity.kind) == [.manufacturer])
        #expect(kept.map(\.data) == [bytes("5900ABCD")])
        #expect(kept.map(\.identity.beaconID) == ["C0:FF:EE:00:00:01"])
    }

    @Test func lists_areApplied() {
        let reports = [
            report(Sample.iBeacon), report(Sample.ruuvi), report(Sample.iBeacon(minor: 8)),
        ]
        #expect(
            take(reports) { $0.allow = ["kind:ibeacon"] }.map(\.identity.kind) == [
                .iBeacon, .iBeacon,
            ]
        )
        #expect(take(reports) { $0.deny = ["*/7", "kind:ruuvi"] }.count == 1)
    }

    @Test func rate_isCountedOnBootTime_notTheWallClock() {
        var settings = BeaconSettings(origin: .adapter(0))
        settings.maxRate = 4
        var intake = SightingIntake(settings)
        var kept = 0
        for tenth in 0..<100 {
            // The wall clock is set back and forth meanwhile.
            clock.stepWall(to: WallTime(milliseconds: tenth % 2 == 0 ? 0 : 4_000_000_000_000))
            intake.take(report(Sample.iBeacon), at: clock.stamp()) { _ in kept += 1 }
            clock.advance(by: .milliseconds(100))
        }
        #expect(kept == 40)
    }

    @Test func flood_ofNewAddressesKeepsEverySighting() {
        let reports = (0..<10_000).map { report(Sample.eddystoneTLM, address: UInt64($0)) }
        #expect(take(reports).count == 10_000)
    }
}
