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
        let fixture = try Fixture(Self.wrong)
        fixture.pass(.seconds(60))
        fixture.receiver(says: Self.now)
        #expect(fixture.watch.current.isSynced)
        fixture.pass(.seconds(10))
        #expect(try fixture.resolved().quality == .corrected)
        #expect(try fixture.resolved().wall == Self.now + .seconds(10))
        // Each fix confirms the time: nothing to store or report.
        for _ in 0..<100 {
            fixture.clock.advance(by: .seconds(1))
            fixture.receiver(says: try fixture.resolved().wall)
        }
        #expect(try fixture.anchor()?.wall == Self.now.milliseconds)
        #expect(try fixture.anchor()?.source == .gpsd)
        #expect(
            try fixture.events() == [
                #"clock_synced {"by":"gpsd","offset_s":1795235342.0}"#
            ]
        )
    }

    @Test func receiverThatLearnsTheLeapSeconds_isBelieved() throws {
        let fixture = try Fixture(Self.wrong)
        fixture.receiver(says: Self.now + .seconds(3))
        fixture.pass(.seconds(600))
        fixture.receiver(says: Self.now + .seconds(600))
        #expect(try fixture.resolved().wall == Self.now + .seconds(600))
        #expect(try fixture.events().count == 2)
    }

    /// Tests/Fixtures/gpsd/gpsd-leap-cold.jsonl, as the location source passes it on.
    @Test func coldReceiverCorrection_isAnEventAndAReason() throws {
        let fixture = try Fixture(Self.wrong)
        fixture.receiver(says: Self.now + .seconds(18), isSettled: false)
        #expect(fixture.watch.current.contradiction == nil)
        fixture.pass(.seconds(28))
        fixture.receiver(says: Self.now + .seconds(28), isSettled: false)
        let events = try fixture.events()
        #expect(events.count == 2)
        #expect(events[0].hasSuffix(#","leap_seconds":"unknown"}"#), "\(events)")
        #expect(events[1].contains(#""contradicts":"gpsd""#), "\(events)")
        #expect(events[1].contains(#""offset_s":-18.0"#), "\(events)")
        #expect(fixture.watch.current.contradiction?.believed == .gpsd)
        #expect(try fixture.resolved().wall == Self.now + .seconds(28))
    }

    @Test func timeServer_overridesColdReceiver_andReportsOffset() throws {
        let fixture = try Fixture(Self.wrong)
        fixture.receiver(says: Self.now + .seconds(18), isSettled: false)
        fixture.pass(.seconds(30))
        fixture.clock.stepWall(to: Self.now + .seconds(30))
        fixture.vouches.update { $0 = true }
        fixture.pass(.seconds(1))
        #expect(try fixture.resolved().wall == Self.now + .seconds(31))
        let reported = try fixture.events().filter { $0.contains(#""by":"ntp""#) }
        #expect(reported.count == 1 && reported[0].contains(#""offset_s":-18.0"#), "\(reported)")
    }

    @Test func coldReceiver_overridesNeitherNTPNorAWarmReceiver() throws {
        for isNTP in [true, false] {
            let fixture = try Fixture(Self.now, synced: isNTP)
            fixture.vouches.update { $0 = false }
            if !isNTP { fixture.receiver(says: Self.now) }
            fixture.pass(.seconds(3600))
            let right = try fixture.resolved().wall
            fixture.receiver(says: right + .seconds(7200), isSettled: false)
            #expect(try fixture.resolved().wall == right)
            fixture.receiver(says: right + .seconds(7200))
            #expect(try fixture.resolved().wall == right + .seconds(7200))
        }
    }

    /// Its fixes come up to a second late, and without the leap seconds it is 18 s ahead.
    @Test(arguments: [
        (-1900, true, false), (-2100, true, true), (900, true, false), (1100, true, true),
        (18_000, false, false), (18_000, true, true), (21_000, false, true),
    ])
    func receiverThatContradictsATimeServer(ahead: Int64, isSettled: Bool, isReported: Bool) throws
    {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.pass(.seconds(60))
        let said = fixture.clock.wall() + .milliseconds(ahead)
        fixture.receiver(says: said, isSettled: isSettled)
        #expect((fixture.watch.current.contradiction != nil) == isReported)
        #expect(try fixture.events().contains { $0.contains("contradicts") } == isReported)
        #expect(try fixture.anchor()?.source == .kernel)
    }

    @Test func kernelThatVouches_isBelievedBeforeAReceiver() throws {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.pass(.seconds(60))
        fixture.receiver(says: Self.now + .seconds(86_400))
        #expect(try fixture.resolved().wall == Self.now + .seconds(60))
        #expect(try fixture.resolved().quality == .synced)
        // Hours without a network: the kernel vouches no more, but a missing leap second is no
        // doubt.
        fixture.vouches.update { $0 = false }
        fixture.pass(.seconds(10 * 3600))
        fixture.receiver(says: fixture.clock.wall() + .seconds(18), isSettled: false)
        #expect(try fixture.anchor()?.source == .kernel)
        // A board whose clocks stood still in sleep is hours late, and only the GNSS receiver
        // knows.
        fixture.receiver(says: fixture.clock.wall() + .seconds(7200))
        #expect(try fixture.anchor()?.source == .gpsd)
        #expect(try fixture.resolved().wall == fixture.clock.wall() + .seconds(7200))
    }

    /// It had a network at installation, and has only a GNSS receiver in the field.
    @Test func clockThatDriftsForMonths_isPutRightByTheReceiver() throws {
        let fixture = try Fixture(Self.now, synced: true)
        fixture.vouches.update { $0 = false }
        for day in 1...60 {
            fixture.pass(.seconds(86_400))
            // A drift of 50 ppm.
            fixture.receiver(says: Self.now + .milliseconds(Int64(day) * 86_404_320))
        }
        let resolved = try fixture.resolved()
        #expect(resolved.quality == .corrected)
        #expect(resolved.wall == Self.now + .milliseconds(60 * 86_404_320))
    }

    @Test func kernelSync_replacesGNSSTime_withoutASecondReport() throws {
        let fixture = try Fixture(Self.wrong)
        fixture.receiver(says: Self.now)
        fixture.clock.stepWall(to: Self.now + .milliseconds(600))
        fixture.vouches.update { $0 = true }
        fixture.pass(.seconds(30))
        #expect(try fixture.anchor()?.source == .kernel)
        #expect(try fixture.resolved().quality == .synced)
        #expect(try fixture.events().filter { $0.hasPrefix("clock_synced") }.count == 1)
    }
}
