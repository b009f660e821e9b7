// What is done about which fault, step by step.
import Host
import Testing

@testable import Audio

@Suite struct LadderTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000_000)

    private func expect(_ step: Ladder.Step, of body: () -> Ladder.Step) {
        let taken = body()
        #expect(taken == step)
    }

    @Test func faultAfterFault_climbsToTheNextDevice_andThenWaits() {
        var ladder = Ladder(devices: 2)
        let steps = (0..<6).map { number in
            ladder.step(
                after: .stalled,
                of: number < 3 ? 0 : 1,
                at: start + .seconds(4 * number)
            )
        }
        #expect(steps == [.restart, .reopen, .next, .restart, .reopen, .wait])
    }

    @Test func aDeviceThatWorkedForHalfAMinute_beginsBelow() {
        var ladder = Ladder(devices: 1)
        expect(.restart) { ladder.step(after: .failed("EIO"), of: 0, at: start) }
        expect(.restart) { ladder.step(after: .failed("EIO"), of: 0, at: start + .seconds(31)) }
        expect(.reopen) { ladder.step(after: .failed("EIO"), of: 0, at: start + .seconds(60)) }
    }

    @Test func overrunsAndSuspends_neverCostTheDevice() {
        var ladder = Ladder(devices: 2)
        for second in 0..<10 {
            expect(.restart) { ladder.step(after: .overrun, of: 0, at: start + .seconds(second)) }
            expect(.restart) { ladder.step(after: .suspended, of: 0, at: start + .seconds(second)) }
        }
    }

    @Test func aDeviceThatIsGone_isOpenedAgain() {
        var ladder = Ladder(devices: 1)
        expect(.reopen) { ladder.step(after: .gone("unplugged"), of: 0, at: start) }
    }

    @Test func silence_isTreatedOnce_andLeftAloneForAnHour() {
        var ladder = Ladder(devices: 1)
        expect(.restart) { ladder.step(after: .silent, of: 0, at: start) }
        #expect(ladder.treatsSilence(of: 0, at: start + .seconds(4)))
        expect(.reopen) { ladder.step(after: .silent, of: 0, at: start + .seconds(4)) }
        #expect(!ladder.treatsSilence(of: 0, at: start + .seconds(8)))
        #expect(!ladder.treatsSilence(of: 0, at: start + .seconds(3600)))
        #expect(ladder.treatsSilence(of: 0, at: start + .seconds(3605)))
    }

    @Test func silenceOfAllDevices_endsOnTheFirst() {
        var ladder = Ladder(devices: 2)
        var steps: [Ladder.Step] = []
        for number in 0..<6 {
            let device = number < 3 ? 0 : 1
            steps.append(
                ladder.step(after: .silent, of: device, at: start + .seconds(4 * number))
            )
        }
        #expect(steps == [.restart, .reopen, .next, .restart, .reopen, .next])
        #expect(!ladder.treatsSilence(of: 0, at: start + .seconds(24)))
        #expect(!ladder.treatsSilence(of: 1, at: start + .seconds(24)))
    }
}
