import Host
import Records
import Support
import Testing

@testable import Live

@Suite struct LiveFormatTests {
    private func format(_ quality: ClockQuality = .synced) -> LiveFormat {
        LiveFormat(topic: "home/site-1") { ($0.wall, quality) }
    }

    private func message(
        _ sighting: Sighting,
        _ format: LiveFormat
    ) -> (topic: String, text: String, isKept: Bool) {
        let key = LiveBeaconKey(sighting.identity)
        var beacon = LiveBeacon(sighting)
        let expiry = Duration.seconds(900)
        let taken = beacon.take(at: sighting.stamp.boot, expiry: expiry)[0]
        let message = format.message(.beacon(key, taken))
        return (message.topic, String(decoding: message.text, as: UTF8.self), message.isKept)
    }

    @Test func ruuvi_hasTheNamesAndUnitsOfTheengs() {
        var sighting = ruuvi(0x3344, temperature: 2150, humidity: 5525, at: 0)
        sighting.telemetry.add(.pressure, scaled: 101_325)
        sighting.telemetry.add(.accelerationZ, scaled: 1000)
        sighting.telemetry.add(.battery, scaled: 2977)
        sighting.telemetry.add(.movementCounter, scaled: 66)
        let message = message(sighting, format())
        #expect(message.topic == "home/site-1/BTtoMQTT/C60011223344")
        #expect(!message.isKept)
        #expect(
            message.text == #"{"id":"C6:00:11:22:33:44","name":"Ruuvi 3344","rssi":-67,"#
                + #""brand":"Ruuvi","model":"RuuviTag","model_id":"RuuviTag_RAWv2","#
                + #""tempc":21.50,"tempf":70.70,"hum":55.25,"pres":1013.25,"accz":9.8067,"#
                + #""volt":2.977,"mov":66,"timestamp":"\#(testStart.wall.rfc3339)"}"#
        )
    }

    @Test func temperatureBelowZero_isRightInFahrenheit() {
        let text = message(ruuvi(1, temperature: -4000, at: 0), format()).text
        #expect(text.contains(#""tempc":-40.00,"tempf":-40.00"#))
    }

    @Test func unsyncedClock_isReported() {
        let text = message(ruuvi(1, at: 0), format(.unsynced)).text
        #expect(text.hasSuffix(#","clock":"unsynced"}"#))
    }

    @Test func secondReadingOfAQuantity_hasANameOfItsOwn() {
        var sighting = ruuvi(1, temperature: 2000, at: 0)
        sighting.telemetry.add(.temperature, scaled: 1000)
        sighting.telemetry.add(.isWindowOpen, scaled: 1)
        let text = message(sighting, format()).text
        #expect(text.contains(#""tempc":20.00,"tempf":68.00,"tempc2":10.00,"tempf2":50.00"#))
        #expect(text.contains(#""open":true"#))
    }

    private func beacon(_ kind: BeaconKind, _ id: String, _ type: AddressType) -> Sighting {
        var sighting = ruuvi(1, at: 0)
        sighting.identity = BeaconIdentity(
            kind: kind,
            beaconID: id,
            address: BluetoothAddress(value: 0x5000_1122_3344),
            addressType: type,
            txPower: -59
        )
        return sighting
    }

    @Test func changingAddress_isReplacedByTheIDOfTheBeacon() {
        let id = "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/8"
        let message = message(beacon(.iBeacon, id, .randomResolvable), format())
        #expect(
            message.topic
                == "home/site-1/BTtoMQTT/f7826da6-4fa2-4e98-8024-bc5b71e0893e-1-8"
        )
        #expect(message.text.contains(#""uuid":"f7826da64fa24e988024bc5b71e0893e","major":1"#))
        #expect(message.text.contains(#""id":"\#(id)""#))
    }

    /// The text of an Eddystone URL is anybody's.
    @Test func idFromOutside_cannotLeaveItsLevelOfTheTopic() {
        for id in ["a/../b", "#", "+", "x\0y", String(repeating: "/", count: 300)] {
            let topic = message(beacon(.eddystoneURL, id, .randomResolvable), format()).topic
            let level = topic.dropFirst("home/site-1/BTtoMQTT/".count)
            #expect((1...64).contains(level.utf8.count))
            #expect(level.utf8.allSatisfy { $0.isDigit || $0 == 45 || $0 > 64 }, "\(level)")
        }
    }

    @Test func recordOfAStream_isItsMembersWithATimestamp() {
        let members = Array(#""temperature_c":21.5"#.utf8)
        let stamp = testStart
        let record = UserRecord(stream: "weather", stamp: stamp, members: members)
        let message = format().message(.record(record))
        #expect(message.topic == "home/site-1/weather")
        #expect(
            String(decoding: message.text, as: UTF8.self)
                == #"{"timestamp":"\#(stamp.wall.rfc3339)","temperature_c":21.5}"#
        )
        // One with a time of its own may be older than what the broker has.
        let late = UserRecord(stream: "weather", stamp: stamp, given: stamp.wall, members: members)
        #expect(message.isKept && !format().message(.record(late)).isKept)
    }

    @Test func positionAndHealth_areRetained_asUploaded() {
        var fix = Fix(stamp: testStart, mode: .threeDimensional, latitude: 46.46, longitude: 6.84)
        fix.horizontalAccuracy = 2.5
        let place = format().message(.fix(fix))
        #expect(place.isKept)
        #expect(
            String(decoding: place.text, as: UTF8.self)
                == #"{"timestamp":"\#(testStart.wall.rfc3339)","latitude":46.4600000,"#
                + #""longitude":6.8400000,"horizontal_accuracy":2.5,"fix":"3d","clock":"synced"}"#
        )
        let health = format().message(.health(testHealth()))
        #expect(health.isKept)
        #expect(String(decoding: health.text, as: UTF8.self).contains(#""state":"healthy""#))
    }
}

func testHealth() -> DeviceHealth {
    var health = DeviceHealth(
        stamp: testStart,
        state: "healthy",
        reasons: [],
        version: "1.0",
        uptime: 60,
        freeBytes: 1_000_000,
        databaseBytes: 1000
    )
    health.pending = ["waypost_events": 2]
    return health
}
