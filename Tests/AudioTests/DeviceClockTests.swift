// The dating of frames over a day, and what counts as a dead clock; no device.
import Host
import Support
import Testing

@testable import Audio

@Suite struct DeviceClockTests {
    private let start = BootInstant(nanoseconds: 5_000_000_000_000)

    /// A device `ppm` fast whose readings come a second apart, each late by up to `jitter` ms.
    private func worstError(ppm: Double, jitter: Double, hours: Int, rate: Int = 48_000) -> Double {
        var clock = DeviceClock(rate: rate)
        var random = SeededRandom(seed: 7)
        let true1 = 1e9 / (Double(rate) * (1 + ppm * 1e-6))
        var worst = 0.0
        var newest = start
        for second in 1...(hours * 3600) {
            let frames = Int64(second * rate)
            let at = start + .nanoseconds(Int64(Double(frames) * true1))
            let late = Double(random.next() % 1_000_000) / 1e6 * jitter
            clock.observe(captured: frames, at: at + .nanoseconds(Int64(late * 1e6)))
            // The segment that has just come in is dated by its first frame.
            guard let dated = clock.time(of: Double(frames - Int64(rate))) else { continue }
            let truth = start + .nanoseconds(Int64(Double(frames - Int64(rate)) * true1))
            worst = max(worst, abs((dated - truth).inSeconds))
            if second > 1 { #expect(dated > newest) }
            newest = dated
        }
        return worst * 1000
    }

    @Test(arguments: [-100.0, 100, 0, 400])
    func aDay_ofAClockThatIsOff_isDatedWithin50Milliseconds(ppm: Double) {
        #expect(worstError(ppm: ppm, jitter: 0, hours: 24) < 10)
        #expect(worstError(ppm: ppm, jitter: 30, hours: 24) < 50)
    }

    @Test func periodIsFound() {
        var clock = DeviceClock(rate: 16_000)
        for second in 1...3600 {
            let at = start + .nanoseconds(Int64(Double(second) * 1e9 / (1 + 100e-6)))
            clock.observe(captured: Int64(second * 16_000), at: at)
        }
        #expect(abs(clock.rateError * 1e6 + 100) < 1)
    }

    @Test func aLateReading_movesItLittle() throws {
        var clock = DeviceClock(rate: 16_000)
        for second in 1...600 {
            clock.observe(captured: Int64(second * 16_000), at: start + .seconds(second))
        }
        clock.observe(captured: 601 * 16_000, at: start + .seconds(601) + .milliseconds(700))
        let dated = try #require(clock.time(of: 600 * 16_000))
        #expect(abs((dated - (start + .seconds(600))).inSeconds) < 0.005)
    }

    private func expect<Value: Equatable>(_ value: Value, of body: () -> Value) {
        let found = body()
        #expect(found == value)
    }

    @Test func liveness_findsAStall_andNothingBefore() {
        var liveness = Liveness(rate: 16_000, period: 800, started: start)
        expect(nil) { liveness.check(captured: 16_000, at: start) }
        expect(nil) { liveness.check(captured: 16_000, at: start + .milliseconds(2900)) }
        expect(.stalled) { liveness.check(captured: 16_000, at: start + .seconds(3)) }
    }

    @Test(arguments: [0.5, 0.95, 1.05, 2.0])
    func liveness_findsADeadClock_withinFiveSeconds(ratio: Double) {
        var liveness = Liveness(rate: 48_000, period: 2400, started: start)
        var frames = 0.0
        for second in 1...40 {
            frames += 48_000
            let at = start + .seconds(second)
            expect(nil) { liveness.check(captured: Int64(frames), at: at) }
        }
        let found = (1...5).first { second in
            frames += 48_000 * ratio
            return liveness.check(captured: Int64(frames), at: start + .seconds(40 + second)) != nil
        }
        #expect(found != nil)
    }

    /// As an emulated card did when its host had stood still.
    @Test(arguments: [1, 10, 30])
    func liveness_letsOneLatePosition_catchUp(late: Int) {
        var liveness = Liveness(rate: 48_000, period: 2400, started: start)
        for second in 1...60 {
            let frames = Int64(second * 48_000) - (second == late ? 14_400 : 0)
            expect(nil) { liveness.check(captured: frames, at: start + .seconds(second)) }
        }
    }

    @Test func liveness_rejectsTwoPercentDrift_andAllowsQuartz() {
        for (ratio, isFound) in [(1.02, true), (0.98, true), (1.0005, false), (0.995, false)] {
            var liveness = Liveness(rate: 48_000, period: 2400, started: start)
            let found = (1...60).contains { second in
                let frames = Int64(Double(second) * 48_000 * ratio)
                return liveness.check(captured: frames, at: start + .seconds(second)) != nil
            }
            #expect(found == isFound, "\(ratio)")
        }
    }

    /// The frames of a pause are missing for ever, and 32 s are no limit to how long it may be.
    @Test(arguments: [1, 2, 3, 10, 60], [4.0, 30, 33, 45, 65, 7200])
    func liveness_findsAPause_ofAnyLength_atAnyTime(began: Int, length: Double) {
        var liveness = Liveness(rate: 16_000, period: 800, started: start)
        for second in 1...began {
            expect(nil) {
                liveness.check(captured: Int64(second) * 16_000, at: start + .seconds(second))
            }
        }
        let later = start + .seconds(length)
        expect(nil) {
            liveness.check(captured: Int64(began + 1) * 16_000, at: later + .seconds(began + 1))
        }
        #expect(liveness.isInDoubt)
        expect(.paused(.seconds(length))) {
            liveness.check(captured: Int64(began + 2) * 16_000, at: later + .seconds(began + 2))
        }
    }
}
