// The clock monitor with a GNSS receiver: when its time is believed.
import Host
import Queue
import Records
import Status
import Support
import Testing

@testable import Daemon

extension ClockWatchTests {
    @Test func receiversTime_datesABootThatNobodyElseSyncs() throws {
        let bench = try Bench(Self.wrong)
        bench.pass(.seconds(60))
        bench.receiver(says: Self.now)
        #expect(bench.watch.current.isSynced)
        bench.pass(.seconds(10))
        #expect(try bench.resolved().quality == .corrected)
        #expect(try bench.resolved().wall == Self.now + .seconds(10))
        // Each fix confirms the time: nothing to store or report.
        for _ in 0..<100 {
            bench.clock.advance(by: .seconds(1))
            bench.receiver(says: try bench.resolved().wall)
        }
        #expect(try bench.anchor()?.wall == Self.now.milliseconds)
        #expect(try bench.anchor()?.source == .gpsd)
        #expect(
            try bench.events() == [
                #"clock_synced {"by":"gpsd","offset_s":1795235342.0}"#
            ]
        )
    }

    @Test func receiverThatLearnsTheLeapSeconds_isBelieved() throws {
        let bench = try Bench(Self.wrong)
        bench.receiver(says: Self.now + .seconds(3))
        bench.pass(.seconds(600))
        bench.receiver(says: Self.now + .seconds(600))
        #expect(try bench.resolved().wall == Self.now + .seconds(600))
        #expect(try bench.events().count == 2)
    }

    /// Tests/Fixtures/gpsd/gpsd-leap-cold.jsonl, as the location source passes it on.
    @Test func coldReceiverThatTakesItsTimeBack_isAnEventAndAReason() throws {
        let bench = try Bench(Self.wrong)
        bench.receiver(says: Self.now + .seconds(18), isSettled: false)
        #expect(bench.watch.current.contradiction == nil)
        bench.pass(.seconds(28))
        bench.receiver(says: Self.now + .seconds(28), isSettled: false)
        let events = try bench.events()
        #expect(events.count == 2)
        #expect(events[0].hasSuffix(#","leap_seconds":"unknown"}"#), "\(events)")
        #expect(events[1].contains(#""contradicts":"gpsd""#), "\(events)")
        #expect(events[1].contains(#""offset_s":-18.0"#), "\(events)")
        #expect(bench.watch.current.contradiction?.believed == .gpsd)
        #expect(try bench.resolved().wall == Self.now + .seconds(28))
    }

    @Test func timeServerAfterAColdReceiver_isBelieved_andTheDifferenceReported() throws {
        let bench = try Bench(Self.wrong)
        bench.receiver(says: Self.now + .seconds(18), isSettled: false)
        bench.pass(.seconds(30))
        bench.clock.stepWall(to: Self.now + .seconds(30))
        bench.vouches.update { $0 = true }
        bench.pass(.seconds(1))
        #expect(try bench.resolved().wall == Self.now + .seconds(31))
        let reported = try bench.events().filter { $0.contains(#""by":"ntp""#) }
        #expect(reported.count == 1 && reported[0].contains(#""offset_s":-18.0"#), "\(reported)")
    }

    @Test func coldReceiver_isWeakerThanATimeServer_andThanOneThatHasRun() throws {
        for isNTP in [true, false] {
            let bench = try Bench(Self.now, synced: isNTP)
            bench.vouches.update { $0 = false }
            if !isNTP { bench.receiver(says: Self.now) }
            bench.pass(.seconds(3600))
            let right = try bench.resolved().wall
            bench.receiver(says: right + .seconds(7200), isSettled: false)
            #expect(try bench.resolved().wall == right)
            bench.receiver(says: right + .seconds(7200))
            #expect(try bench.resolved().wall == right + .seconds(7200))
        }
    }

    /// Its fixes come up to a second late, and without the leap seconds it is 18 s ahead.
    @Test(arguments: [
        (-1900, true, false), (-2100, true, true), (900, true, false), (1100, true, true),
        (18_000, false, false), (18_000, true, true), (21_000, false, true),
    ])
    func receiverThatContradictsATimeServer(ahead: Int64, isSettled: Bool, isTold: Bool) throws {
        let bench = try Bench(Self.now, synced: true)
        bench.pass(.seconds(60))
        let said = bench.clock.wall() + .milliseconds(ahead)
        bench.receiver(says: said, isSettled: isSettled)
        #expect((bench.watch.current.contradiction != nil) == isTold)
        #expect(try bench.events().contains { $0.contains("contradicts") } == isTold)
        #expect(try bench.anchor()?.source == .kernel)
    }

    @Test func kernelThatVouches_isBelievedBeforeAReceiver() throws {
        let bench = try Bench(Self.now, synced: true)
        bench.pass(.seconds(60))
        bench.receiver(says: Self.now + .seconds(86_400))
        #expect(try bench.resolved().wall == Self.now + .seconds(60))
        #expect(try bench.resolved().quality == .synced)
        // Hours without a network: the kernel vouches no more, but a missing leap second is no
        // doubt.
        bench.vouches.update { $0 = false }
        bench.pass(.seconds(10 * 3600))
        bench.receiver(says: bench.clock.wall() + .seconds(18), isSettled: false)
        #expect(try bench.anchor()?.source == .kernel)
        // A board whose clocks stood still in sleep is hours late, and only the GNSS receiver
        // knows.
        bench.receiver(says: bench.clock.wall() + .seconds(7200))
        #expect(try bench.anchor()?.source == .gpsd)
        #expect(try bench.resolved().wall == bench.clock.wall() + .seconds(7200))
    }

    /// It had a network at installation, and has only a GNSS receiver in the field.
    @Test func clockThatDriftsForMonths_isPutRightByTheReceiver() throws {
        let bench = try Bench(Self.now, synced: true)
        bench.vouches.update { $0 = false }
        for day in 1...60 {
            bench.pass(.seconds(86_400))
            // A drift of 50 ppm.
            bench.receiver(says: Self.now + .milliseconds(Int64(day) * 86_404_320))
        }
        let resolved = try bench.resolved()
        #expect(resolved.quality == .corrected)
        #expect(resolved.wall == Self.now + .milliseconds(60 * 86_404_320))
    }

    @Test func kernelThatSyncsAfterAReceiver_takesOver_andIsNotToldAgain() throws {
        let bench = try Bench(Self.wrong)
        bench.receiver(says: Self.now)
        bench.clock.stepWall(to: Self.now + .milliseconds(600))
        bench.vouches.update { $0 = true }
        bench.pass(.seconds(30))
        #expect(try bench.anchor()?.source == .kernel)
        #expect(try bench.resolved().quality == .synced)
        #expect(try bench.events().filter { $0.hasPrefix("clock_synced") }.count == 1)
    }
}
