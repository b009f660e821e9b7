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

    @Test func beaconIsSentOncePerInterval_withTheNewestOfEachQuantity() {
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
        #expect(sent.first?.readings.map(\.reading.scaled) == [2200, 5000])
        #expect(sent.first?.stamp.boot == at(3))
        #expect(values.dropped == 0)
    }

    @Test func withoutAConnection_nobodyIsWoken_andMissedMessagesAreCounted() {
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
        _ = values.add(ruuvi(9999, at: 1))
        #expect(values.dropped == 1)
        _ = values.add(ruuvi(3, temperature: 1, at: 2))
        #expect(values.beacons.count == LiveValues.beaconLimit)
        // Those that were not heard for 15 minutes give their places to new ones.
        _ = values.add(ruuvi(9999, at: 901))
        #expect(values.beacons.count == LiveValues.beaconLimit)
        #expect(values.beacons[LiveBeaconKey(ruuvi(9999, at: 0).identity)] != nil)
    }

    @Test func addressThatChanges_givesItsPlaceToABeacon() {
        var values = LiveValues(interval: interval)
        for number in 0..<LiveValues.beaconLimit { _ = values.add(phone(number, at: 0)) }
        _ = values.add(ruuvi(1, at: 1))
        #expect(values.beacons[LiveBeaconKey(ruuvi(1, at: 0).identity)] != nil)
        _ = values.add(phone(9999, at: 1))
        #expect(values.beacons[LiveBeaconKey(phone(9999, at: 0).identity)] == nil)
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
