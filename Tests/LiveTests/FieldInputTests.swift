// Payloads that failed in the field, from the radio's report to what Home Assistant gets.
import Configuration
import FoundationEssentials
import Host
import JSON
import Records
import SourceSupport
import Support
import Testing

@testable import Beacons
@testable import Live

@Suite struct FieldInputTests {
    /// Seven presses in four groups; the packets with "none" after a press are no press.
    @Test func eachPress_isPublishedWithinASecond() throws {
        let lines = try payloads("ha-button-then-none")
        let times = [0, 18, 20, 22, 38, 41, 58, 59, 60]
        let messages = try play(Array(zip(times, lines)))
        let presses = messages.flatMap { message in
            ["button", "button2", "button3", "button4"].compactMap { name in
                message.text(name).flatMap { $0 == "none" ? nil : $0 }
                    .map { "\(message.second) \(name) \($0)" }
            }
        }
        #expect(
            presses == [
                "18 button press", "20 button2 press", "22 button3 double_press",
                "38 button press", "58 button press", "59 button press", "60 button press",
            ]
        )
    }

    @Test func shortOpening_isPublishedAtOnce() throws {
        let messages = try play(Array(zip([0, 2, 6], try payloads("ha-short-opening"))))
        let states = messages.map { "\($0.second) \($0.members["open"] == .flag(true))" }
        #expect(states.prefix(3) == ["0 false", "2 true", "6 false"])
    }

    @Test func valueThatIsNoLongerMeasured_becomesNull() throws {
        let lines = try payloads("ha-stale-value")
        let silent = (12..<200).map { ($0 * 5, lines[1 + $0 % 2]) }
        let messages = try play([(0, lines[0])] + silent)
        #expect(messages.first?.members["tempc"] == .number("22.20"))
        let nulls = messages.filter { $0.members["tempc"] == .null }
        let first = try #require(nulls.first?.second)
        #expect((900...910).contains(first))
        // In each message: one that Home Assistant misses is made up for.
        #expect(nulls.count == messages.count { $0.second >= first })
        #expect(nulls.allSatisfy { $0.members["tempf"] == .null && $0.members["hum"] != .null })
    }

    @Test func tagThatRepeatsOneMeasurement_becomesNull() throws {
        let line = try payloads("ha-frozen-tag")[0]
        let messages = try play((0..<200).map { ($0 * 5, line) })
        #expect(messages[0].members["tempc"] == .number("23.30"))
        #expect(messages.last?.members["tempc"] == .null)
        #expect(messages.last?.members["hum"] == .null)
        #expect(messages.last?.members["rssi"] == .number("-60"))
    }

    @Test func everyEntityOfASilentBeacon_expires() throws {
        let line = try payloads("ha-silent-binary")[0]
        var announcements = Announcements(
            LiveDevice(id: "site", version: "1"),
            LiveFormat(topic: "home/site") { ($0.wall, .synced) },
            LiveSettings()
        )
        for sighting in try sightings([(0, line)]) { _ = announcements.saw(message(sighting)) }
        let texts = announcements.take(at: at(0))
        guard case .object(let device) = try JSONValue(texts[0].text),
            case .object(let entities)? = device["cmps"]
        else { throw NeverHappened(what: "a description") }
        #expect(entities["open"] != nil)
        for (name, entity) in entities {
            guard case .object(let members) = entity else { continue }
            #expect(members["exp_aft"] == .number("3600"), "\(name)")
        }
    }

    @Test func modelOfARuuvi_isThatOfItsFormat() throws {
        let lines = try payloads("ha-model")
        let old = try play([(0, lines[0])])[0]
        #expect(old.text("model") == "RuuviTag" && old.text("model_id") == "RuuviTag_RAWv1")
        let air = try play([(0, lines[1])])[0]
        #expect(air.text("model") == "Ruuvi Air" && air.members["model_id"] == nil)
    }

    // MARK: Helpers

    private struct Published {
        var second: Int
        var members: [String: JSONValue]

        func text(_ name: String) -> String? {
            if case .text(let text)? = members[name] { text } else { nil }
        }
    }

    private func payloads(_ name: String) throws -> [[UInt8]] {
        let path = Tree.path("Tests/Fixtures/beacons/\(name).hex")
        return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            .filter { !$0.hasPrefix("#") }
            .map { try #require(bytes(hex: String($0))) }
    }

    /// The sightings of payloads that one sender sends at these seconds.
    private func sightings(_ heard: [(second: Int, payload: [UInt8])]) throws -> [Sighting] {
        var intake = SightingIntake(BeaconSettings(), RecordingSink())
        var sightings: [Sighting] = []
        for (second, payload) in heard {
            let report = AdvertisingReport(
                address: BluetoothAddress(value: 0xC600_1122_3344),
                addressType: .randomStatic,
                rssi: -60,
                data: payload[...]
            )
            intake.receive(report, at: testStart.advanced(by: .seconds(second))) {
                sightings.append($0)
            }
        }
        return sightings
    }

    /// Publishes them with a reader that comes whenever something is due.
    private func play(_ heard: [(second: Int, payload: [UInt8])]) throws -> [Published] {
        let format = LiveFormat(topic: "home/site") { ($0.wall, .synced) }
        var values = LiveValues(interval: LiveSettings().interval)
        var (published, next) = ([Published](), BootInstant?.none)
        func receive(_ now: BootInstant) throws {
            let taken = values.take(at: now)
            next = taken.next
            for message in taken.messages {
                guard case .object(let members) = try JSONValue(format.message(message).text)
                else { continue }
                let second = Int((now - at(0)) / .seconds(1))
                published.append(Published(second: second, members: members))
            }
        }
        values.open(at: at(0))
        for sighting in try sightings(heard) {
            while let due = next, due <= sighting.stamp.boot { try receive(due) }
            if values.add(sighting) || next == nil { try receive(sighting.stamp.boot) }
        }
        if let due = next { try receive(due) }
        return published
    }
}
