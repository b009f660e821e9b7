// The rate limit per beacon: so many sightings per second, and each measurement once.
import Host
import Queue
import Records
import Support
import Testing

@testable import Beacons

private func at(_ milliseconds: Int64) -> BootInstant {
    BootInstant(nanoseconds: milliseconds * 1_000_000)
}

extension HeardBeacons {
    fileprivate mutating func keeps(_ identity: BeaconIdentity, at now: BootInstant) -> Bool {
        receive(identity, at: now) != .tooOften
    }
}

@Suite struct HeardBeaconsTests {
    private func identity(_ number: Int, address: UInt64 = 1) -> BeaconIdentity {
        BeaconIdentity(
            kind: .ruuvi,
            beaconID: "\(number)",
            address: BluetoothAddress(value: address),
            addressType: .randomStatic
        )
    }

    @Test(arguments: [4.0, 0.5, 2.5, 1, 10, 30])
    func rate_isKeptEvenly(rate: Double) {
        var heard = HeardBeacons(rate: rate)
        var generator = SeededRandom(seed: 11)
        var kept: [Int64] = []
        var now: Int64 = 5000
        while now < 65_000 {
            if heard.keeps(identity(1), at: at(now)) { kept.append(now) }
            now += Int64.random(in: 1...60, using: &generator)
        }
        for (before, after) in zip(kept, kept.dropFirst()) {
            #expect(Double(after - before) >= 800 / rate)
        }
        #expect(Double(kept.count) <= rate * 60 + 1)
        // Nor much less than allowed: what is heard every 30 ms finds most places.
        #expect(Double(kept.count) > rate * 60 * (rate < 20 ? 0.85 : 0.5))
    }

    /// `from`: when the beacon was kept by the process before.
    @Test(arguments: [(1000, false), (900_000, true)] as [(Int64, Bool)])
    func sightingBeforeARestart_countsInItsOwnBootOnly(from: Int64, isKept: Bool) {
        var heard = HeardBeacons(rate: 4)
        var telemetry = Telemetry()
        telemetry.add(.mark, scaled: MeasurementMark.sequence(7).stored)
        let stamp = Stamp(boot: at(from), wall: WallTime(milliseconds: 0))
        heard.recall(
            Sighting(identity: identity(1), rssi: nil, telemetry: telemetry, stamp: stamp)
        )
        #expect(heard.keeps(identity(1), at: at(1100)) == isKept)
        #expect(heard.keeps(identity(1), at: at(1400)) == true)
    }

    /// Both payloads of one counter are known again, as versions before stored them.
    @Test func payloadsOfOneCounter_areNotNewAfterARestart() {
        var heard = HeardBeacons(rate: 4)
        var readings: [Telemetry] = []
        for (index, quantity) in [Quantity.temperature, .voltage].enumerated() {
            var telemetry = Telemetry()
            telemetry.add(quantity, scaled: 2150)
            telemetry.add(.mark, scaled: 190 << 3 | 4)
            readings.append(telemetry)
            let stamp = Stamp(boot: at(Int64(index) * 1000), wall: WallTime(milliseconds: 0))
            heard.recall(
                Sighting(identity: identity(1), rssi: nil, telemetry: telemetry, stamp: stamp)
            )
        }
        let verdicts = readings.enumerated().map { index, telemetry in
            heard.receive(
                identity(1),
                .counter(190),
                telemetry,
                at: at(5000 + Int64(index) * 1000)
            )
        }
        #expect(verdicts == [.repeated, .repeated])
        var other = Telemetry()
        other.add(.temperature, scaled: 2160)
        #expect(heard.receive(identity(1), .counter(190), other, at: at(7000)) == .new)
    }

    @Test func recalledBeacon_usesItsNewestSighting() {
        var heard = HeardBeacons(rate: 4)
        var telemetry = Telemetry()
        telemetry.add(.mark, scaled: MeasurementMark.sequence(7).stored)
        for time in [500, 1000] as [Int64] {
            let stamp = Stamp(boot: at(time), wall: WallTime(milliseconds: 0))
            heard.recall(
                Sighting(identity: identity(1), rssi: nil, telemetry: telemetry, stamp: stamp)
            )
        }
        #expect(heard.keeps(identity(1), at: at(1100)) == false)
        #expect(heard.keeps(identity(1), at: at(1200)) == true)
    }

    @Test func burst_isOneSighting_howeverLongTheBeaconWasQuiet() {
        var heard = HeardBeacons(rate: 4)
        let times: [Int64] = [0, 11, 21, 31, 1001, 10_000, 10_010, 10_150, 10_210]
        #expect(times.filter { heard.keeps(identity(1), at: at($0)) } == [0, 1001, 10_000, 10_210])
    }

    @Test func jitteryBeacon_isKeptWhole_atItsConfiguredRate() {
        var heard = HeardBeacons(rate: 4)
        var generator = SeededRandom(seed: 7)
        // Early and late by up to 20 ms, around one each 250 ms.
        let times = (0..<1000).map { $0 * 250 + Int64.random(in: -20...20, using: &generator) }
        #expect(times.filter { !heard.keeps(identity(1), at: at(1000 + $0)) } == [])
    }

    @Test func beacons_countApart_butOneIDOnNewAddressesDoesNot() {
        var heard = HeardBeacons(rate: 1)
        #expect(heard.keeps(identity(1), at: at(0)) == true)
        #expect(heard.keeps(identity(2), at: at(0)) == true)
        #expect(heard.keeps(identity(1, address: 99), at: at(10)) == false)
        var other = identity(1)
        other.kind = .eddystoneTLM
        #expect(heard.keeps(other, at: at(10)) == true)
        #expect(heard.keeps(identity(1), at: at(1000)) == true)
    }

    @Test func flood_staysBounded_andForgetsTheQuietFirst() {
        var heard = HeardBeacons(rate: 1)
        for number in 0..<HeardBeacons.limit - 1 {
            #expect(heard.keeps(identity(number), at: at(0)) == true)
        }
        #expect(heard.keeps(identity(-1), at: at(1500)) == true)
        // Full: the quiet ones go, the one just heard stays limited.
        #expect(heard.keeps(identity(-2), at: at(1600)) == true)
        #expect(heard.keeps(identity(-1), at: at(1700)) == false)
    }

    /// Phones that change their addresses pass by all day; a sensor in the street sends each measurement for minutes.
    @Test func sensor_isRemembered_despiteManyOneTimeAddresses() {
        var heard = HeardBeacons(rate: 4)
        var telemetry = Telemetry()
        telemetry.add(.temperature, scaled: 2150)
        let sensor = identity(1)
        func receive(_ heard: inout HeardBeacons, _ time: Int64) -> MeasurementVerdict {
            heard.receive(sensor, .sequence(7), telemetry, at: at(time))
        }
        #expect(receive(&heard, 0) == .new)
        for passer in 0..<10_000 {
            let other = identity(2, address: UInt64(1000 + passer))
            var phone = other
            (phone.kind, phone.beaconID) = (.manufacturer, "")
            _ = heard.receive(phone, at: at(1 + Int64(passer)))
        }
        #expect(receive(&heard, 11_000) == .repeated)
    }
}

@Suite struct MeasurementTests {
    /// Takes marks at seconds; a reading of its own for each `value`.
    private func receive(_ heard: [(mark: MeasurementMark, value: Int64, at: Int64)])
        -> [MeasurementVerdict]
    {
        var last = LastMeasurement()
        return heard.map { mark, value, seconds in
            var telemetry = Telemetry()
            telemetry.add(.temperature, scaled: value)
            let now = at(seconds * 1000)
            let verdict = last.evaluate(mark, telemetry, at: now)
            if verdict == .new { last.keep(mark, telemetry, at: now) }
            return verdict
        }
    }

    @Test func sequence_isOneMeasurement_howeverOftenItIsHeard() {
        let verdicts = receive(
            (0..<50).map { (.sequence(7), 1, $0 * 60) } + [(.sequence(8), 1, 3001)]
        )
        #expect(verdicts == [.new] + Array(repeating: .repeated, count: 49) + [.new])
    }

    @Test func sequence_thatStartsAgain_losesNothing() {
        let verdicts = receive([
            (.sequence(900), 1, 1), (.sequence(0), 2, 2), (.sequence(1), 3, 3),
            // Passing the old number again: the readings differ.
            (.sequence(900), 4, 4), (.sequence(900), 5, 5), (.sequence(900), 5, 6),
        ])
        #expect(verdicts == [.new, .new, .new, .new, .new, .repeated])
    }

    @Test func packet_isRepeat_withinFourSecondsOfTheLast() {
        let verdicts = receive([
            (.packet(9), 1, 10), (.packet(9), 1, 13), (.packet(9), 1, 17), (.packet(9), 1, 21),
            (.packet(9), 1, 26), (.packet(10), 1, 27), (.packet(9), 1, 28),
        ])
        #expect(verdicts == [.new, .repeated, .repeated, .repeated, .new, .new, .new])
    }

    @Test func packet_inTwoParts_isBothOfThem() {
        let verdicts = receive([
            (.packet(9), 1, 10), (.packet(9), 2, 11), (.packet(9), 1, 12), (.packet(9), 2, 13),
        ])
        #expect(verdicts == [.new, .new, .repeated, .repeated])
    }

    @Test func counter_isNeverBelievedTwice() {
        let verdicts = receive([
            (.counter(5000), 1, 10), (.counter(5000), 1, 4000), (.counter(5001), 1, 4001),
            (.counter(4000), 1, 4002), (.counter(5000), 1, 4003), (.counter(5001), 1, 4004),
        ])
        #expect(
            verdicts == [
                .new, .repeated, .new, .replayed(last: 5001), .replayed(last: 5001), .repeated,
            ]
        )
    }

    @Test(arguments: [
        // Back among the first hundred: the device was restarted before our ears.
        [(UInt32(5000), Int64(10)), (0, 11), (1, 12), (2, 13)],
        // Somewhere lower after ten minutes of silence: it was restarted out of reach.
        [(5000, 10), (300, 700), (301, 701)],
    ])
    func counter_ofARestartedDevice_losesNothing(heard: [(UInt32, Int64)]) {
        let verdicts = receive(heard.map { (.counter($0), 1, $1) })
        #expect(verdicts == Array(repeating: .new, count: heard.count))
    }

    /// Some firmware sends what does not fit into one packet under the counter of the first.
    @Test func counter_ofTwoPayloads_isBothOfThem() {
        let verdicts = receive([
            (.counter(190), 1, 10), (.counter(190), 2, 11), (.counter(190), 1, 12),
            (.counter(190), 2, 13), (.counter(191), 1, 14), (.counter(191), 2, 15),
        ])
        #expect(verdicts == [.new, .new, .repeated, .repeated, .new, .new])
    }

    /// A battery was changed, and the counter begins somewhere that is not low: it counts on from there.
    @Test func counterThatWasReset_isBelievedOnceItCountsOn() {
        let verdicts = receive([
            (.counter(5000), 1, 10), (.counter(300), 2, 20), (.counter(300), 2, 25),
            (.counter(301), 3, 30), (.counter(301), 3, 35), (.counter(302), 4, 40),
        ])
        #expect(
            verdicts == [
                .new, .replayed(last: 5000), .replayed(last: 5000), .new, .repeated, .new,
            ]
        )
    }

    /// The device itself continues, so its counter was not reset.
    @Test func recordingPlayedBesideItsDevice_isNotBelieved() {
        let verdicts = receive([
            (.counter(5000), 1, 10), (.counter(300), 2, 20), (.counter(5001), 3, 25),
            (.counter(301), 4, 30), (.counter(5001), 3, 32), (.counter(302), 5, 35),
        ])
        #expect(
            verdicts == [
                .new, .replayed(last: 5000), .new, .replayed(last: 5001), .repeated,
                .replayed(last: 5001),
            ]
        )
    }

    @Test func formatsOfOneRuuviAir_areOneMeasurement() {
        let verdicts = receive([
            (.shortSequence(7), 1, 1), (.longSequence(0x1_0007), 2, 2),
            (.longSequence(0x1_0008), 3, 3), (.shortSequence(8), 4, 4), (.shortSequence(9), 5, 5),
            (.longSequence(0x1_0009), 6, 6), (.shortSequence(9), 5, 7),
            // The long form is out of reach: the short one counts again.
            (.shortSequence(90), 7, 100), (.shortSequence(90), 7, 101),
            (.shortSequence(91), 8, 102),
        ])
        #expect(
            verdicts == [
                .new, .repeated, .new, .repeated, .repeated, .new, .repeated, .new, .repeated, .new,
            ]
        )
    }

    /// Both formats of each measurement, format 6 first: `apart` ms later comes E1, and once a second the next.
    @Test(arguments: [(4.0, 20), (4, 150), (1, 600), (0.9, 900)] as [(Double, Int64)])
    func format6OfARuuviAir_leavesThePlacesToE1(rate: Double, apart: Int64) {
        var heard = HeardBeacons(rate: rate)
        let air = ruuvi(1)
        var kept: [UInt32] = []
        for number in 0..<60 as Range<UInt32> {
            let now = Int64(number) * 1250
            var telemetry = Telemetry()
            telemetry.add(.pm2_5, scaled: Int64(number))
            let short = MeasurementMark.shortSequence(UInt8(number))
            _ = heard.receive(air, short, telemetry, at: at(now))
            telemetry.add(.pm10, scaled: Int64(number))
            let long = MeasurementMark.longSequence(number)
            let verdict = heard.receive(air, long, telemetry, at: at(now + apart))
            if verdict == .new { kept.append(number) }
        }
        // Format 6 came first, when nobody knew yet that there is E1.
        #expect(kept.count >= 58)
    }

    /// Extended advertising does not reach as far.
    @Test func format6OfARuuviAir_isKept_whereE1IsHeardNowAndThen() {
        var heard = HeardBeacons(rate: 4)
        let air = ruuvi(1)
        var verdicts: [MeasurementVerdict] = []
        for number in 0..<100 as Range<UInt32> {
            let now = at(Int64(number) * 1000)
            var telemetry = Telemetry()
            telemetry.add(.pm2_5, scaled: Int64(number))
            let short = MeasurementMark.shortSequence(UInt8(number))
            verdicts.append(heard.receive(air, short, telemetry, at: now))
            // Just behind format 6: the limit leaves it out.
            guard number % 20 == 10 else { continue }
            let late = at(Int64(number) * 1000 + 20)
            #expect(heard.receive(air, .longSequence(number), telemetry, at: late) == .tooOften)
        }
        // Format E1, which is never stored, does not turn a reading of format 6 into a repeat.
        #expect(!verdicts.contains(.repeated))
        #expect(verdicts.count { $0 == .new } == 100 - 5 * 5)
    }

    private func ruuvi(_ number: Int) -> BeaconIdentity {
        BeaconIdentity(
            kind: .ruuvi,
            beaconID: "\(number)",
            address: BluetoothAddress(value: UInt64(number)),
            addressType: .randomStatic
        )
    }

    @Test func flood_forgetsTheOldestMeasurements_only() {
        var heard = HeardBeacons(rate: 1000)
        for number in 0..<10_000 {
            let now = at(Int64(number))
            #expect(heard.receive(ruuvi(number), .sequence(1), at: now) == .new)
        }
        #expect(heard.receive(ruuvi(9999), .sequence(1), at: at(10_000)) == .repeated)
        #expect(heard.receive(ruuvi(9000), .sequence(1), at: at(10_000)) == .repeated)
        #expect(heard.receive(ruuvi(0), .sequence(1), at: at(10_000)) == .new)
    }
}
