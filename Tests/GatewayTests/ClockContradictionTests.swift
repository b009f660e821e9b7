// Two time sources that contradict each other.
import Host
import Queue
import Records
import Status
import Support
import Testing

@testable import Daemon

extension ClockWatchTests {
    /// chrony follows a wrong server on site: the kernel is believed, and both times are reported.
    @Test func clockContradiction_isReported_untilResolved() throws {
        let fixture = try Fixture(Self.now + .seconds(86_400), synced: true)
        for _ in 0..<100 {
            fixture.clock.advance(by: .seconds(1))
            fixture.receiver(says: fixture.clock.wall() + .seconds(-86_400))
        }
        let reported =
            #"clock_synced {"by":"ntp","time":"2026-11-22T04:30:08.000Z","contradicts":"gpsd","#
            + #""its_time":"2026-11-21T04:30:08.000Z","offset_s":86400.0}"#
        #expect(try fixture.events() == [reported])
        #expect(try fixture.resolved().quality == .synced)
        #expect(
            fixture.watch.current.contradiction?.message
                == "NTP says 2026-11-22T04:30:08.000Z, the GNSS receiver behind gpsd says "
                + "2026-11-21T04:30:08.000Z; the first is believed: find out which is wrong"
        )
        fixture.receiver(says: fixture.clock.wall() + .seconds(18), isSettled: false)
        #expect(fixture.watch.current.contradiction == nil)
    }

    /// An unplugged GNSS receiver must not contradict for ever.
    @Test func receiverThatIsGone_contradictsNoLongerThanAnHour() throws {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.receiver(says: Self.now + .seconds(86_400))
        fixture.pass(.seconds(3599))
        #expect(fixture.watch.current.contradiction != nil)
        fixture.pass(.seconds(1))
        #expect(fixture.watch.current.contradiction == nil)
        // An intermittent contradiction causes one event per hour.
        fixture.receiver(says: Self.now)
        #expect(try fixture.events().count == 2)
        fixture.pass(.seconds(3600))
        fixture.receiver(says: fixture.clock.wall())
        fixture.receiver(says: Self.now)
        #expect(try fixture.events().count == 3)
    }

    /// The program restarts between the wrong time and the right one.
    @Test func restart_reportsTimeContradictingTheOneBefore() throws {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.clock.advance(by: .seconds(60))
        fixture.step(by: 7200)
        let again = try ClockMonitor(queue: fixture.queue, clock: fixture.clock) { _ in true }
        #expect(again.current.contradiction?.other == .kernel)
        #expect(try fixture.events().count == 1)
    }

    @Test(arguments: [ClockSource.gpsd, .kernel])
    func timeContradictingEarlierOne_isReported(first: ClockSource) throws {
        let fixture = try Fixture(Self.wrong)
        switch first {
        case .gpsd: fixture.receiver(says: Self.now + .seconds(-3600))
        case .kernel:
            fixture.clock.stepWall(to: Self.now + .seconds(-3600))
            fixture.vouches.update { $0 = true }
            fixture.pass(.zero)
        }
        fixture.clock.stepWall(to: Self.now)
        fixture.vouches.update { $0 = true }
        fixture.pass(.zero)
        let by = first == .gpsd ? "gpsd" : "ntp"
        #expect(
            try fixture.events().last
                == #"clock_synced {"by":"ntp","time":"2026-11-21T04:30:07.000Z","#
                + #""contradicts":"\#(by)","its_time":"2026-11-21T03:30:07.000Z","offset_s":3600.0}"#
        )
    }
}
