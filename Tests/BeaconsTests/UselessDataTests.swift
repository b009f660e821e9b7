// A controller whose reports cannot be read.
import FoundationEssentials
import Host
import Records
import StatusBoard
import SourceSupport
import Support
import Testing

@testable import Beacons

@Suite struct UselessDataTests {
    @Test func unreadableReports_areAnErrorAfterAMinute() {
        let clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 1_000_000_000_000),
                wall: WallTime(milliseconds: 1_796_119_200_000)
            )
        )
        let board = Publisher<SourceReport>()
        let reception = Reception(
            BeaconSettings(),
            RecordingSink(),
            SourceMeter(device: "hci0", board: board),
            clock: clock
        )
        reception.meter.working("passive scan", now: clock.now())
        func hear(_ event: [UInt8], seconds: Int) {
            for _ in 0..<seconds {
                reception.receive(event[...])
                reception.update(nil, clock.now())
                clock.advance(by: .seconds(1))
            }
        }
        let good = Event.legacy(Event.legacyReport(Sample.iBeacon))
        let damaged = Array(good.dropLast(5))
        hear(damaged, seconds: 59)
        #expect(board.failure == nil)
        hear(damaged, seconds: 3)
        #expect(board.failure?.message.hasPrefix("hci0: nothing usable for a minute: ") == true)
        hear(good, seconds: 1)
        #expect(board.loadedDetail == "passive scan")
    }
    /// An advertisement without an address: the one in the payload counts, and no other.
    @Test func anonymousAdvertisement_hasNoAddressOfZeros() throws {
        let path = Tree.path("Tests/Fixtures/beacons/hci-anonymous.hex")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let packet = try #require(bytes(hex: text.filter { $0 != "\n" }))
        var parser = ReportParser()
        let reports = parser.parse(packet.dropFirst())
        #expect(reports.map(\.isAnonymous) == [true])
        var intake = SightingIntake(BeaconSettings(), RecordingSink())
        var sightings: [Sighting] = []
        for report in reports { intake.receive(report, at: testStart) { sightings.append($0) } }
        #expect(sightings.map(\.identity.address.description) == ["CB:B8:33:4C:88:4F"])
        #expect(sightings.map(\.identity.addressType) == [.randomStatic])
        #expect(sightings.first?.telemetry.isEmpty == false)
        // A payload without one names no sender.
        var nameless = reports[0]
        nameless.data = Sample.iBeacon[...]
        intake.receive(nameless, at: testStart) { sightings.append($0) }
        #expect(sightings.count == 1)
    }
}
