// The freshness ladder by itself: what it asks for, and when.
import Host
import Testing

@testable import Beacons

@Suite struct LadderTests {
    private func at(_ seconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: seconds * 1_000_000_000)
    }

    /// Asks every `step` seconds up to `end`; each remedy works and changes nothing.
    private func climb(
        _ ladder: inout FreshnessLadder,
        from: Int64,
        to end: Int64,
        step: Int64 = 30
    ) -> [String] {
        stride(from: from, through: end, by: Int(step)).compactMap { second in
            guard let rung = ladder.check(at: at(second)) else { return nil }
            ladder.started(at: at(second))
            return "\(second) \(rung)"
        }
    }

    @Test func silenceAfterReports_isClimbedFromTheLastReport() {
        var ladder = FreshnessLadder(at: at(0))
        ladder.started(at: at(0))
        ladder.heard(at: at(100))
        #expect(climb(&ladder, from: 120, to: 189, step: 1) == [])
        #expect(
            climb(&ladder, from: 190, to: 400, step: 1) == [
                "190 restart", "220 reset", "250 reopen",
            ]
        )
        #expect(ladder.isResting)
    }

    @Test func scanThatNeverHeardAnything_isClimbedFromItsStart() {
        var ladder = FreshnessLadder(at: at(0))
        ladder.started(at: at(5))
        #expect(
            climb(&ladder, from: 30, to: 480) == ["120 restart", "210 reset", "300 reopen"]
        )
        #expect(ladder.isResting)
    }

    /// A day at a place without beacons: ever fewer rounds, and never more than three resets in an hour.
    @Test func placeWithoutBeacons_isLeftInPeace() {
        var ladder = FreshnessLadder(at: at(0))
        ladder.started(at: at(0))
        let day = climb(&ladder, from: 0, to: 86_400)
        let resets = day.filter { !$0.hasSuffix("restart") }
            .compactMap { Int64($0.split(separator: " ")[0]) }
        for (index, second) in resets.enumerated() where index >= 3 {
            #expect(second - resets[index - 3] >= 3600, "\(second)")
        }
        #expect(day.filter { $0.hasSuffix("restart") }.count < 40)
        #expect(resets.count >= 24)
        #expect(ladder.silence(at: at(86_400)) == .seconds(86_400))
    }

    @Test func report_endsTheRound_andTheNextSilenceBeginsAtTheBottom() {
        var ladder = FreshnessLadder(at: at(0))
        ladder.heard(at: at(0))
        #expect(climb(&ladder, from: 0, to: 130) == ["90 restart", "120 reset"])
        #expect(ladder.reached == .reset)
        #expect(ladder.heard(at: at(131)) == true)
        #expect(ladder.heard(at: at(132)) == false)
        #expect(ladder.reached == nil)
        #expect(ladder.silence(at: at(140)) == nil)
        #expect(climb(&ladder, from: 150, to: 240) == ["240 restart"])
    }

    /// A scan that was started just now is not to be started again at the next look.
    @Test func rebuiltScanner_doesNotTripAtOnce() {
        var ladder = FreshnessLadder(at: at(0))
        ladder.started(at: at(0))
        #expect(ladder.check(at: at(1000)) == .restart)
        ladder.started(at: at(1000))
        #expect(climb(&ladder, from: 1000, to: 1089, step: 1) == [])
    }

    @Test func failedStarts_areFollowedByStrongerMeans_withinTheHoursBounds() {
        var ladder = FreshnessLadder(at: at(0))
        let rungs = (0..<9).map { ladder.failed(at: at(Int64($0) * 30)) }
        #expect(
            rungs == [
                .restart, .reset, .reopen, .restart, .reset, .restart, .restart, .restart, .restart,
            ]
        )
        #expect(ladder.failedStarts == 9)
        ladder.started(at: at(300))
        #expect(ladder.failedStarts == 0)
        #expect(ladder.failed(at: at(301)) == .restart)
        #expect(ladder.failed(at: at(302)) == .restart)
        #expect(ladder.failed(at: at(3800)) == .reopen)
    }
}

@Suite struct MeddlingTests {
    private func at(_ milliseconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: milliseconds * 1_000_000)
    }

    @Test func scanThatWasSwitchedOff_isStartedAgainAfterAMoment() {
        var meddling = Meddling()
        #expect(meddling.delay(at(0)) == nil)
        meddling.saw(.off, at: at(1000))
        #expect(meddling.delay(at(1100)) == .milliseconds(400))
        #expect(meddling.isDue(at: at(1499)) == false)
        #expect(meddling.isDue(at: at(1500)) == true)
        #expect(meddling.isDue(at: at(1501)) == false)
        #expect(meddling.delay(at(1501)) == nil)
    }

    @Test func scanThatIsOnAgain_isLeftToWhoWantedIt() {
        var meddling = Meddling()
        meddling.saw(.off, at: at(1000))
        meddling.saw(.on(filtersDuplicates: true), at: at(1400))
        #expect(meddling.isDue(at: at(9000)) == false)
        meddling.saw(.off, at: at(9000))
        #expect(meddling.isDue(at: at(9500)) == true)
    }

    /// Ended by us at a stop, their scan would be off for good: the kernel believes that it ended by itself.
    @Test func scanOfOthers_isTheirsToEnd() {
        var meddling = Meddling()
        #expect(!meddling.isTheirs)
        meddling.saw(.off, at: at(1000))
        #expect(!meddling.isTheirs)
        meddling.saw(.on(filtersDuplicates: true), at: at(1001))
        #expect(meddling.isTheirs)
        meddling.started()
        #expect(!meddling.isTheirs)
        #expect(meddling.delay(at(1001)) == nil)
    }

    @Test func quarrel_isFoughtSlowly() {
        var meddling = Meddling()
        meddling.saw(.off, at: at(0))
        #expect(meddling.isDue(at: at(500)) == true)
        meddling.saw(.off, at: at(600))
        #expect(meddling.isDue(at: at(5400)) == false)
        #expect(meddling.isDue(at: at(5500)) == true)
    }

    @Test(
        arguments: [
            ("030C 00", .off), ("0C20 02 0000", .off), ("0C20 02 0001", .off),
            ("0C20 02 0101", .on(filtersDuplicates: true)),
            ("0C20 02 0100", .on(filtersDuplicates: false)), ("4220 06 000000000000", .off),
            ("4220 06 010100000000", .on(filtersDuplicates: true)), ("0B20 07 00A00050000000", nil),
            ("0C20 02", nil), ("0C20", nil), ("", nil),
        ] as [(String, HCI.ScanOrder?)]
    )
    func order_isReadFromTheCommand(command: String, expected: HCI.ScanOrder?) {
        #expect(HCI.ScanOrder(bytes(command)[...]) == expected)
    }
}
