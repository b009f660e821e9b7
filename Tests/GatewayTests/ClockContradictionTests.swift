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
    @Test func receiverThatContradictsAVouchedClock_isTold_untilTheyAgree() throws {
        let bench = try Bench(Self.now + .seconds(86_400), synced: true)
        for _ in 0..<100 {
            bench.clock.advance(by: .seconds(1))
            bench.receiver(says: bench.clock.wall() + .seconds(-86_400))
        }
        let told =
            #"clock_synced {"by":"ntp","time":"2026-11-22T04:30:08.000Z","contradicts":"gpsd","#
            + #""its_time":"2026-11-21T04:30:08.000Z","offset_s":86400.0}"#
        #expect(try bench.events() == [told])
        #expect(try bench.resolved().quality == .synced)
        #expect(
            bench.watch.current.contradiction?.message
                == "NTP says 2026-11-22T04:30:08.000Z, the GNSS receiver behind gpsd says "
                + "2026-11-21T04:30:08.000Z; the first is believed: find out which is wrong"
        )
        bench.receiver(says: bench.clock.wall() + .seconds(18), isSettled: false)
        #expect(bench.watch.current.contradiction == nil)
    }

    /// An unplugged GNSS receiver must not contradict for ever.
    @Test func receiverThatIsGone_contradictsNoLongerThanAnHour() throws {
        let bench = try Bench(Self.now, synced: true)
        bench.receiver(says: Self.now + .seconds(86_400))
        bench.pass(.seconds(3599))
        #expect(bench.watch.current.contradiction != nil)
        bench.pass(.seconds(1))
        #expect(bench.watch.current.contradiction == nil)
        // An intermittent contradiction causes one event per hour.
        bench.receiver(says: Self.now)
        #expect(try bench.events().count == 2)
        bench.pass(.seconds(3600))
        bench.receiver(says: bench.clock.wall())
        bench.receiver(says: Self.now)
        #expect(try bench.events().count == 3)
    }

    /// The program restarts between the wrong time and the right one.
    @Test func restartBetweenTwoWords_tellsThatTheyDiffer() throws {
        let bench = try Bench(Self.now, synced: true)
        bench.clock.advance(by: .seconds(60))
        bench.step(by: 7200)
        let again = try ClockMonitor(queue: bench.queue, clock: bench.clock) { _ in true }
        #expect(again.current.contradiction?.other == .kernel)
        #expect(try bench.events().count == 1)
    }

    @Test(arguments: [ClockSource.gpsd, .kernel])
    func wordThatContradictsTheOneBefore_isTold(first: ClockSource) throws {
        let bench = try Bench(Self.wrong)
        switch first {
        case .gpsd: bench.receiver(says: Self.now + .seconds(-3600))
        case .kernel:
            bench.clock.stepWall(to: Self.now + .seconds(-3600))
            bench.vouches.update { $0 = true }
            bench.pass(.zero)
        }
        bench.clock.stepWall(to: Self.now)
        bench.vouches.update { $0 = true }
        bench.pass(.zero)
        let by = first == .gpsd ? "gpsd" : "ntp"
        #expect(
            try bench.events().last
                == #"clock_synced {"by":"ntp","time":"2026-11-21T04:30:07.000Z","#
                + #""contradicts":"\#(by)","its_time":"2026-11-21T03:30:07.000Z","offset_s":3600.0}"#
        )
    }
}
