// Home Assistant was restarted: the last values come again, but nothing that happened once.
import Host
import Records
import Support
import Testing

@testable import Live

@Suite struct RenewalTests {
    private func values(_ sightings: [Sighting]) -> LiveValues {
        var values = LiveValues(interval: .seconds(10))
        values.open(at: at(0))
        for sighting in sightings { _ = values.add(sighting) }
        _ = values.take(at: at(0))
        return values
    }

    /// The readings that are sent after a renewal at a second.
    private func renewed(_ values: LiveValues, at second: Int) -> [[Int64]] {
        var values = values
        values.renew(at: at(second))
        return values.take(at: at(second)).messages.compactMap { message in
            guard case .beacon(_, let beacon) = message else { return nil }
            return beacon.readings.compactMap(\.reading?.scaled)
        }
    }

    @Test func lastValues_comeAgain() {
        var values = values([ruuvi(1, temperature: 2000, humidity: 5000, at: 0)])
        #expect(renewed(values, at: 20) == [[2000, 5000]])
        // Heard since without a new measurement, and sent.
        _ = values.add(ruuvi(1, at: 12))
        #expect(values.take(at: at(12)).messages.count == 1)
        #expect(renewed(values, at: 40) == [[2000, 5000]])
        // A newer value that still waits is not replaced by the older one.
        _ = values.add(ruuvi(1, temperature: 2100, at: 50))
        #expect(renewed(values, at: 60) == [[2100, 5000]])
    }

    /// The broker was away while a window was opened and a button was pressed.
    @Test func afterAnOutage_theLastValuesCome_butNoEvents() {
        func heard(isOpen: Int64, at second: Int) -> Sighting {
            var sighting = ruuvi(1, temperature: 2000, at: second)
            sighting.telemetry.add(.isWindowOpen, scaled: isOpen)
            sighting.telemetry.add(.button, scaled: 1)
            return sighting
        }
        var values = values([heard(isOpen: 0, at: 0)])
        values.isOpen = false
        _ = values.add(heard(isOpen: 1, at: 100))
        var late = values
        values.open(at: at(200))
        #expect(renewed(values, at: 200) == [[2000, 1]])
        late.open(at: at(1000))
        #expect(renewed(late, at: 1000) == [])
    }

    @Test func buttonPress_andABeaconThatIsGone_doNot() {
        var press = ruuvi(2, temperature: 2000, at: 0)
        press.telemetry.add(.button, scaled: 1)
        let values = values([press])
        #expect(renewed(values, at: 20) == [[2000]])
        #expect(renewed(values, at: 901) == [])
    }
}
