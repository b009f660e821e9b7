// The freshness recovery by itself: what it asks for, and when.
import Host
import Support
import Testing

@testable import Beacons

@Suite struct RecoveryTests {
    private func at(_ seconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: seconds * 1_000_000_000)
    }

    /// Asks every `step` seconds up to `end`; each remedy works and changes nothing.
    private func climb(
        _ recovery: inout SilenceRecovery,
        from: Int64,
        to end: Int64,
        step: Int64 = 30
    ) -> [String] {
        stride(from: from, through: end, by: Int(step)).compactMap { second in
            guard let step = recovery.nextStep(at: at(second)) else { return nil }
            recovery.started(at: at(second))
            return "\(second) \(step)"
        }
    }

    @Test func silenceAfterReports_isClimbedFromTheLastReport() {
        var recovery = SilenceRecovery(at: at(0))
        recovery.started(at: at(0))
        recovery.heard(at: at(100))
        #expect(climb(&recovery, from: 120, to: 189, step: 1) == [])
        #expect(
            climb(&recovery, from: 190, to: 400, step: 1) == [
                "190 restart", "215 reset", "240 reopen",
            ]
        )
        #expect(recovery.isResting)
    }

    @Test func scanThatNeverHeardAnything_isClimbedFromItsStart() {
        var recovery = SilenceRecovery(at: at(0))
        recovery.started(at: at(5))
        #expect(
            climb(&recovery, from: 30, to: 480) == ["120 restart", "210 reset", "300 reopen"]
        )
        #expect(recovery.isResting)
    }

    /// A day at a place without beacons: ever fewer rounds, and never more than three resets in an hour.
    @Test func placeWithoutBeacons_isLeftInPeace() {
        var recovery = SilenceRecovery(at: at(0))
        recovery.started(at: at(0))
        let day = climb(&recovery, from: 0, to: 86_400)
        let resets = day.filter { !$0.hasSuffix("restart") }
            .compactMap { Int64($0.split(separator: " ")[0]) }
        for (index, second) in resets.enumerated() where index >= 3 {
            #expect(second - resets[index - 3] >= 3600, "\(second)")
        }
        #expect(day.filter { $0.hasSuffix("restart") }.count < 40)
        #expect(resets.count >= 24)
        #expect(recovery.silence(at: at(86_400)) == .seconds(86_400))
    }

    @Test func report_endsRecoveryRound_andResetsEscalation() {
        var recovery = SilenceRecovery(at: at(0))
        recovery.heard(at: at(0))
        #expect(climb(&recovery, from: 0, to: 130) == ["90 restart", "120 reset"])
        #expect(recovery.reached == .reset)
        #expect(recovery.heard(at: at(131)) == true)
        #expect(recovery.heard(at: at(132)) == false)
        #expect(recovery.reached == nil)
        #expect(recovery.silence(at: at(140)) == nil)
        #expect(climb(&recovery, from: 150, to: 240) == ["240 restart"])
    }

    /// A scan that was started just now is not to be started again at the next look.
    @Test func rebuiltScanner_doesNotTripAtOnce() {
        var recovery = SilenceRecovery(at: at(0))
        recovery.started(at: at(0))
        #expect(recovery.nextStep(at: at(1000)) == .restart)
        recovery.started(at: at(1000))
        #expect(climb(&recovery, from: 1000, to: 1089, step: 1) == [])
    }

    @Test func failedStarts_escalateRecovery_withinHourlyLimits() {
        var recovery = SilenceRecovery(at: at(0))
        let steps = (0..<9).map { recovery.failed(at: at(Int64($0) * 30)) }
        #expect(
            steps == [
                .restart, .reset, .reopen, .restart, .reset, .restart, .restart, .restart, .restart,
            ]
        )
        #expect(recovery.failedStarts == 9)
        recovery.started(at: at(300))
        #expect(recovery.failedStarts == 0)
        #expect(recovery.failed(at: at(301)) == .restart)
        #expect(recovery.failed(at: at(302)) == .restart)
        #expect(recovery.failed(at: at(3800)) == .reopen)
    }
}

@Suite struct InterferenceTests {
    private func at(_ milliseconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: milliseconds * 1_000_000)
    }

    @Test func scanThatWasSwitchedOff_isStartedAgainAfterAMoment() {
        var interference = Interference()
        #expect(interference.delay(at(0)) == nil)
        interference.saw(.off, at: at(1000))
        #expect(interference.delay(at(1100)) == .milliseconds(400))
        #expect(interference.isDue(at: at(1499)) == false)
        #expect(interference.isDue(at: at(1500)) == true)
        #expect(interference.isDue(at: at(1501)) == false)
        #expect(interference.delay(at(1501)) == nil)
    }

    @Test func scanThatIsOnAgain_isLeftToWhoWantedIt() {
        var interference = Interference()
        interference.saw(.off, at: at(1000))
        interference.saw(.on(filtersDuplicates: true), at: at(1400))
        #expect(interference.isDue(at: at(9000)) == false)
        interference.saw(.off, at: at(9000))
        #expect(interference.isDue(at: at(9500)) == true)
    }

    @Test func scanThatHidesRepeats_isReplacedAfterAMinute() {
        var interference = Interference()
        interference.saw(.on(filtersDuplicates: true), at: at(1000))
        #expect(interference.delay(at(2000)) == .seconds(59))
        #expect(interference.isDue(at: at(60_999)) == false)
        #expect(interference.isDue(at: at(61_000)) == true)
        #expect(interference.delay(at(61_000)) == nil)
        interference.saw(.on(filtersDuplicates: true), at: at(70_000))
        interference.saw(.on(filtersDuplicates: false), at: at(71_000))
        #expect(interference.delay(at(71_000)) == nil)
    }

    /// Ended by us at a stop, their scan would be off for good: the kernel believes that it ended by itself.
    @Test func scanOfOthers_isTheirsToEnd() {
        var interference = Interference()
        #expect(!interference.isTheirs)
        interference.saw(.off, at: at(1000))
        #expect(!interference.isTheirs)
        interference.saw(.on(filtersDuplicates: true), at: at(1001))
        #expect(interference.isTheirs)
        interference.started()
        #expect(!interference.isTheirs)
        #expect(interference.delay(at(1001)) == nil)
    }

    @Test func quarrel_isFoughtSlowly() {
        var interference = Interference()
        interference.saw(.off, at: at(0))
        #expect(interference.isDue(at: at(500)) == true)
        interference.saw(.off, at: at(600))
        #expect(interference.isDue(at: at(5400)) == false)
        #expect(interference.isDue(at: at(5500)) == true)
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
