import Host
import Records
import Support
import Testing

@testable import Live

@Suite struct LiveValuesTests {
    private let interval = Duration.seconds(10)

    private func beacon(_ message: LiveMessage) -> LiveBeacon? {
        if case .beacon(_, let beacon) = message { beacon } else { nil }
    }

    @Test func beacon_isSentOncePerInterval_withNewestQuantities() {
        var values = LiveValues(interval: interval)
        values.open(at: at(0))
        // Just connected, the reader comes by itself.
        #expect(values.add(ruuvi(1, temperature: 2000, at: 0)) == false)
        var taken = values.take(at: at(0))
        #expect(taken.messages.count == 1)
        #expect(taken.next == nil)

        // The reader is woken once: it then knows when the next message is due.
        #expect(values.add(ruuvi(1, temperature: 2100, at: 1)) == true)
        #expect(values.add(ruuvi(1, humidity: 5000, at: 2)) == false)
        #expect(values.add(ruuvi(1, temperature: 2200, at: 3)) == false)
        taken = values.take(at: at(3))
        #expect(taken.messages.isEmpty)
        #expect(taken.next == at(10))

        taken = values.take(at: at(10))
        let sent = taken.messages.compactMap(beacon)
        #expect(sent.first?.readings.map(\.reading?.scaled) == [2200, 5000])
        #expect(sent.first?.stamp.boot == at(3))
        #expect(values.dropped == 0)
    }

    @Test func missedMessages_areCounted_withoutWakingTheReader() {
        var values = LiveValues(interval: interval)
        for second in 0..<100 {
            #expect(values.add(ruuvi(1, temperature: Int64(second), at: second)) == false)
        }
        // One for each two intervals that passed without a reader.
        #expect(values.dropped == 4)
        values.open(at: at(200))
        #expect(values.dropped == 5)
        #expect(values.take(at: at(200)).messages.isEmpty)
    }

    @Test func beaconsAreBounded_andThoseThatAreHeardStay() {
        var values = LiveValues(interval: interval)
        for number in 0..<LiveValues.beaconLimit { _ = values.add(ruuvi(number, at: 0)) }
        for number in 0..<LiveValues.beaconLimit { _ = values.add(ruuvi(number, at: 1)) }
        _ = values.take(at: at(2))
        #expect(values.wasFull == nil)
        _ = values.add(ruuvi(9999, at: 2))
        #expect(values.dropped == 1)
        #expect(values.wasFull == at(2))
        _ = values.add(ruuvi(3, temperature: 1, at: 2))
        #expect(values.beacons.count == LiveValues.beaconLimit)
        // Those that were not heard for long give their places to new ones.
        _ = values.add(ruuvi(9999, at: 901))
        #expect(values.beacons.count == LiveValues.beaconLimit)
        #expect(values.beacons[LiveBeaconKey(ruuvi(9999, at: 0).identity)] != nil)
    }

    /// Somebody sends from ever new addresses, and each only once.
    @Test func forgedAddresses_keepOutNoBeacon() {
        var values = LiveValues(interval: interval)
        values.open(at: at(0))
        var published = 0
        for number in 0..<2000 {
            _ = values.add(ruuvi(100 + number, at: number / 100))
            if number >= 600, number % 100 == 0 {
                _ = values.add(ruuvi(1, temperature: 1, at: number / 100))
            }
            for message in values.take(at: at(number / 100)).messages {
                guard case .beacon(let key, let beacon) = message else { continue }
                let isReal = key == LiveBeaconKey(ruuvi(1, at: 0).identity)
                #expect(beacon.isEstablished == isReal)
                if isReal { published += 1 }
            }
        }
        #expect(published >= 1)
        #expect(values.wasFull != nil)
        // Those that were sent three times each give way after some minutes of silence.
        var thrice = LiveValues(interval: interval)
        for number in 0..<3 * 600 { _ = thrice.add(ruuvi(100 + number / 3, at: 0)) }
        _ = thrice.add(ruuvi(1, at: 301))
        #expect(thrice.beacons[LiveBeaconKey(ruuvi(1, at: 0).identity)] != nil)
    }

    @Test func beacon_isEstablishedByThirdSightingInAMinute() {
        var seldom = LiveValues(interval: interval)
        for second in [0, 40, 80, 120] { _ = seldom.add(ruuvi(1, at: second)) }
        #expect(beacon(seldom.take(at: at(120)).messages[0])?.isEstablished == false)
        _ = seldom.add(ruuvi(1, at: 130))
        #expect(beacon(seldom.take(at: at(130)).messages[0])?.isEstablished == true)
        // One that sends seldom is not, unless a filter names it.
        var sleepy = LiveValues(interval: interval)
        for number in 0..<20 { _ = sleepy.add(ruuvi(1, at: number * 90)) }
        #expect(beacon(sleepy.take(at: at(1710)).messages[0])?.isEstablished == false)
        var named = LiveValues(interval: interval, isFiltered: true)
        _ = named.add(ruuvi(1, at: 0))
        #expect(beacon(named.take(at: at(0)).messages[0])?.isEstablished == true)
    }

    /// With a reader that is away for a moment, too.
    @Test func events_replaceNoEvent_andAreBounded() {
        var values = LiveValues(interval: interval)
        values.open(at: at(0))
        func press(_ event: Int64, _ second: Int) -> Sighting {
            var sighting = ruuvi(1, temperature: 2000 + event, at: second)
            sighting.telemetry.add(.button, scaled: event)
            return sighting
        }
        for event in [1, 2, 0, 1] as [Int64] { _ = values.add(press(event, 0)) }
        let taken = values.take(at: at(0)).messages.compactMap(beacon)
        let buttons = taken.map { $0.readings.filter { $0.key.quantity == .button } }
        #expect(buttons.map { $0.map(\.reading?.scaled) } == [[1], [2], [1]])
        #expect(taken[0].readings.first?.reading?.scaled == 2001)
        for _ in 0..<LiveBeacon.changeLimit + 3 { _ = values.add(press(1, 1)) }
        #expect(values.dropped == 3)
        #expect(values.take(at: at(1)).messages.count == LiveBeacon.changeLimit)
        // A press during an outage is not sent later.
        _ = values.add(press(1, 2))
        values.isOpen = false
        values.open(at: at(100))
        #expect(values.take(at: at(100)).messages.isEmpty)
        #expect(values.dropped == 4)
    }

    @Test func addressThatChanges_givesItsPlaceToABeacon() {
        var values = LiveValues(interval: interval)
        for number in 0..<LiveValues.beaconLimit { _ = values.add(phone(number, at: 0)) }
        _ = values.add(ruuvi(1, at: 1))
        #expect(values.beacons[LiveBeaconKey(ruuvi(1, at: 0).identity)] != nil)
        _ = values.add(phone(9999, at: 1))
        #expect(values.beacons[LiveBeaconKey(ruuvi(1, at: 0).identity)] != nil)
        #expect(values.beacons.count == LiveValues.beaconLimit)
    }

    @Test func records_dropTheOldest_byNumberAndBytes() {
        var values = LiveValues(interval: interval)
        let limit = LiveValues.recordLimit
        for number in 0..<limit + 5 { _ = values.add([record(number, bytes: 10)]) }
        #expect(values.dropped == 5)
        let first = values.take(at: at(0)).messages.first
        guard case .record(let oldest)? = first else { return #expect(Bool(false)) }
        #expect(oldest.stamp.boot == at(5))

        var large = LiveValues(interval: interval)
        for number in 0..<limit { _ = large.add([record(number, bytes: 16 << 10)]) }
        #expect(large.dropped == limit - LiveValues.recordBytes / (16 << 10))
    }

    @Test func newestFixAndHealth_replaceTheOnesBefore() {
        var values = LiveValues(interval: interval)
        values.open(at: at(0))
        for second in 0..<3 {
            let stamp = Stamp(boot: at(second), wall: testStart.wall)
            _ = values.add(Fix(stamp: stamp, mode: .threeDimensional, latitude: 46, longitude: 6))
        }
        let messages = values.take(at: at(3)).messages
        guard case .fix(let fix)? = messages.first else { return #expect(Bool(false)) }
        #expect(messages.count == 1)
        #expect(fix.stamp.boot == at(2))
    }
}

// MARK: Records for the tests of this room

func at(_ second: Int) -> BootInstant { testStart.boot + .seconds(second) }

private func stamp(_ second: Int) -> Stamp { testStart.advanced(by: .seconds(second)) }

func ruuvi(
    _ number: Int,
    temperature: Int64? = nil,
    humidity: Int64? = nil,
    at second: Int
) -> Sighting {
    var telemetry = Telemetry()
    if let temperature { telemetry.add(.temperature, scaled: temperature) }
    if let humidity { telemetry.add(.humidity, scaled: humidity) }
    let address = BluetoothAddress(value: 0xC600_1122_0000 + UInt64(number))
    return Sighting(
        identity: BeaconIdentity(
            kind: .ruuvi,
            beaconID: address.description,
            address: address,
            addressType: .randomStatic
        ),
        rssi: -67,
        telemetry: telemetry,
        stamp: stamp(second)
    )
}

/// The message of a beacon that was heard once, and is announced at once.
func message(_ sighting: Sighting, isEstablished: Bool = true) -> LiveMessage {
    var beacon = LiveBeacon(sighting, isEstablished: isEstablished)
    let taken = beacon.take(at: sighting.stamp.boot, expiry: .seconds(900))
    return .beacon(LiveBeaconKey(sighting.identity), taken[0])
}

/// A device whose address changes, without an id.
func phone(_ number: Int, at second: Int) -> Sighting {
    Sighting(
        identity: BeaconIdentity(
            kind: .manufacturer,
            beaconID: "",
            address: BluetoothAddress(value: 0x4000_0000_0000 + UInt64(number)),
            addressType: .randomResolvable
        ),
        rssi: -90,
        data: [0x4C, 0],
        stamp: stamp(second)
    )
}

private func record(_ second: Int, bytes: Int) -> UserRecord {
    let members = "\"x\":\"\(String(repeating: "a", count: bytes - 6))\""
    return UserRecord(stream: "weather", stamp: stamp(second), members: Array(members.utf8))
}
