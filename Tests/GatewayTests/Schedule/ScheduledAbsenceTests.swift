// A closed window is neither a loss nor a return; a device that is missing in many windows is lost.
import Host
import StatusBoard
import Testing

@testable import Daemon

@Suite struct ScheduledAbsenceTests {
    private let start = Stamp(
        boot: BootInstant(nanoseconds: 3_600_000_000_000),
        wall: WallTime(milliseconds: 1_795_235_407_000)
    )

    private func at(_ seconds: Double) -> Stamp { start.advanced(by: .seconds(seconds)) }

    private func lost(_ health: inout SourceHealth, _ seconds: Double) -> Bool {
        if case .lost? = health.evaluate(at: at(seconds).boot, patience: .seconds(30)) {
            true
        } else {
            false
        }
    }

    @Test func closedWindow_isNoAbsence() {
        var health = SourceHealth()
        _ = health.record(.loaded(SourceReport(device: "mic")), at: at(0))
        health.schedule(isOff: true, at: at(10).boot)
        // The device is opened before the next window.
        _ = health.record(.loading(previous: nil), at: at(98))
        #expect(!lost(&health, 99))
        health.schedule(isOff: false, at: at(100).boot)
        #expect(!lost(&health, 101))
        _ = health.record(.loaded(SourceReport(device: "mic")), at: at(101))
        #expect(health.evaluate(at: at(140).boot, patience: .seconds(30)) == nil)
        #expect(health.absence == nil)
    }

    @Test func deviceThatIsMissingInShortWindows_isLost() {
        var health = SourceHealth()
        _ = health.record(.error(Failure("gone"), previous: nil), at: at(0))
        health.schedule(isOff: true, at: at(20).boot)
        #expect(!lost(&health, 200))
        health.schedule(isOff: false, at: at(600).boot)
        #expect(!lost(&health, 609))
        #expect(lost(&health, 611))
    }
}
