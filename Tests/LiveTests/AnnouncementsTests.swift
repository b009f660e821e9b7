import Configuration
import Host
import JSON
import Records
import Support
import Testing

@testable import Live

@Suite struct AnnouncementsTests {
    private func announcements(_ change: (inout LiveSettings) -> Void = { _ in }) -> Announcements {
        Announcements(
            LiveDevice(id: "site.1", version: "1.0"),
            LiveFormat(topic: "home/site.1") { ($0.wall, .synced) },
            LiveSettings(change)
        )
    }

    /// The entities of a description by name.
    private func entities(_ text: [UInt8]) throws -> [String: JSONValue] {
        guard case .object(let device) = try JSONValue(text),
            case .object(let entities)? = device["cmps"]
        else { throw NeverHappened(what: "a description") }
        return entities
    }

    private func field(_ entity: JSONValue?, _ name: String) -> String? {
        guard case .object(let members)? = entity, case .text(let text)? = members[name] else {
            return nil
        }
        return text
    }

    @Test func newQuantity_isAnnounced_atMostEveryTenSeconds() throws {
        var announcements = announcements()
        #expect(announcements.saw(message(ruuvi(1, temperature: 1, at: 0))) == true)
        let first = announcements.take(at: at(0))
        #expect(first.map(\.topic) == ["homeassistant/device/waypost_site_1_C60011220001/config"])
        let entities = try entities(first[0].text)
        #expect(Set(entities.keys) == ["rssi", "tempc"])
        #expect(field(entities["tempc"], "uniq_id") == "waypost_site.1_C60011220001_tempc")
        #expect(field(entities["tempc"], "unit_of_meas") == "°C")
        #expect(field(entities["tempc"], "dev_cla") == "temperature")
        #expect(field(entities["tempc"], "avty_t") == "home/site.1/LWT")

        #expect(announcements.saw(message(ruuvi(1, temperature: 2, at: 1))) == false)
        #expect(announcements.due(at: at(2)) == nil)
        #expect(announcements.saw(message(ruuvi(1, humidity: 2, at: 2))) == true)
        #expect(announcements.take(at: at(2)).isEmpty)
        #expect(announcements.due(at: at(2)) == at(10))
        let second = announcements.take(at: at(10))
        #expect(try Set(self.entities(second[0].text).keys) == ["rssi", "tempc", "hum"])
    }

    @Test func manyBeacons_areAnnouncedGradually_afterARestartToo() {
        var announcements = announcements()
        announcements.announceAll()
        for number in 0..<500 { _ = announcements.saw(message(ruuvi(number, at: 0))) }
        #expect(announcements.take(at: at(0)).count == 1 + Announcements.burst)
        #expect(announcements.take(at: at(0)).isEmpty)
        for second in 1..<50 {
            #expect(announcements.due(at: at(second)) == at(second))
            #expect(announcements.take(at: at(second)).count == Announcements.burst)
        }
        #expect(announcements.due(at: at(50)) == nil)
        // A broker that says `online` all the time gets no more.
        announcements.announceAll()
        announcements.announceAll()
        let topics = (60..<110).flatMap { announcements.take(at: at($0)).map(\.topic) }
        #expect(Set(topics).count == 501)
        #expect(topics.count == 501)
    }

    @Test func beaconThatWasHeardOnce_isNotAnnounced() {
        var announcements = announcements()
        let once = message(ruuvi(1, temperature: 1, at: 0), isEstablished: false)
        #expect(announcements.saw(once) == false)
        #expect(announcements.due(at: at(0)) == nil)
    }

    @Test func diagnosticEntities_startDisabled_andNameTheGateway() throws {
        var announcements = announcements()
        var sighting = ruuvi(1, temperature: 1, at: 0)
        for quantity in [Quantity.packetID, .movementCounter, .accelerationX, .sequence, .battery] {
            sighting.telemetry.add(quantity, scaled: 1)
        }
        _ = announcements.saw(message(sighting))
        let text = announcements.take(at: at(0))[0].text
        let disabled = try entities(text).filter { _, entity in
            guard case .object(let members) = entity else { return false }
            return members["en"] == .flag(false)
        }
        #expect(Set(disabled.keys) == ["rssi", "packet", "mov", "accx", "seq"])
        guard case .object(let device) = try JSONValue(text) else { return }
        #expect(field(device["dev"], "name") == "Ruuvi 0001 (site.1)")
    }

    @Test func addressThatChanges_isNotAnnounced() {
        var announcements = announcements()
        #expect(announcements.saw(message(phone(1, at: 0))) == false)
        #expect(announcements.due(at: at(0)) == nil)
    }

    @Test func switchedOff_announcesNothing() {
        var announcements = announcements { $0.homeAssistant = false }
        announcements.announceAll()
        #expect(announcements.saw(message(ruuvi(1, temperature: 1, at: 0))) == false)
        #expect(announcements.due(at: at(0)) == nil)
    }

    @Test func gateway_hasWhatItReports() throws {
        var announcements = announcements { $0.discoveryPrefix = "ha" }
        let members = #""pressure_pa":101325,"name":"x","bad name":1,"c'}}":1,"n":{"a":1}"#
        _ = announcements.saw(
            .record(UserRecord(stream: "weather", stamp: testStart, members: Array(members.utf8)))
        )
        _ = announcements.saw(.health(testHealth()))
        _ = announcements.saw(
            .fix(Fix(stamp: testStart, mode: .threeDimensional, latitude: 0, longitude: 0))
        )
        let all = announcements.take(at: at(0))
        #expect(all.map(\.topic) == ["ha/device/waypost_site_1/config"])
        let entities = try entities(all[0].text)
        #expect(field(entities["position"], "json_attr_t") == "home/site.1/location")
        #expect(field(entities["connection"], "avty_t") == nil)
        #expect(field(entities["free_bytes"], "unit_of_meas") == "GB")
        #expect(entities["wifi_rssi_dbm"] == nil)
        // Not the whole record: it is another one each minute.
        #expect(field(entities["state"], "json_attr_tpl")?.contains("value_json.reasons") == true)
        // Only numbers, and only under names that are safe in a template.
        #expect(entities.keys.filter { $0.hasPrefix("weather") } == ["weather_pressure_pa"])
        #expect(field(entities["weather_pressure_pa"], "unit_of_meas") == "hPa")
        #expect(field(entities["weather_pressure_pa"], "name") == "Weather atmospheric pressure")
        #expect(
            field(entities["weather_pressure_pa"], "val_tpl")
                == "{{ value_json['pressure_pa'] * 0.01 if value_json['pressure_pa'] is number }}"
        )
    }

    /// Every quantity of every beacon is an entity whose name and template are safe.
    @Test func everyQuantity_hasAnEntity() throws {
        var names: Set<String> = []
        for quantity in Quantity.allCases where quantity != .mark {
            var announcements = announcements()
            var sighting = ruuvi(1, at: 0)
            switch quantity.form {
            case .text, .hex: sighting.telemetry.add(quantity, bytes: [65])
            default: sighting.telemetry.add(quantity, scaled: 1)
            }
            _ = announcements.saw(message(sighting))
            let entities = try entities(announcements.take(at: at(0))[0].text)
            #expect(entities.count == 2, "\(quantity)")
            let name = LiveQuantity(quantity).member
            #expect(names.insert(name).inserted, "\(name) is twice in the table")
            #expect(field(entities[name], "val_tpl")?.contains("value_json.\(name)") == true)
            let isNamed = field(entities[name], "name") != nil
            #expect(isNamed || field(entities[name], "dev_cla") != nil, "\(quantity)")
            // An event has no value that could become old.
            guard case .object(let members)? = entities[name] else { continue }
            var isEvent = false
            if case .event = LiveQuantity(quantity).entity { isEvent = true }
            #expect((members["exp_aft"] == .number("900")) != isEvent, "\(quantity)")
        }
    }
}
