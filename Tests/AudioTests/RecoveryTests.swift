// The recovery steps for each fault.
import Host
import Testing

@testable import Audio

@Suite struct RecoveryTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000_000)

    private func expect(_ step: CaptureRecovery.Step, of body: () -> CaptureRecovery.Step) {
        let taken = body()
        #expect(taken == step)
    }

    @Test func faultAfterFault_climbsToTheNextDevice_andThenWaits() {
        var recovery = CaptureRecovery(devices: 2)
        let steps = (0..<6).map { number in
            recovery.step(
                after: .stalled,
                of: number < 3 ? 0 : 1,
                at: start + .seconds(4 * number)
            )
        }
        #expect(steps == [.restart, .reopen, .next, .restart, .reopen, .wait])
    }

    @Test func aDeviceThatWorkedForHalfAMinute_beginsBelow() {
        var recovery = CaptureRecovery(devices: 1)
        expect(.restart) { recovery.step(after: .failed("EIO"), of: 0, at: start) }
        expect(.restart) { recovery.step(after: .failed("EIO"), of: 0, at: start + .seconds(31)) }
        expect(.reopen) { recovery.step(after: .failed("EIO"), of: 0, at: start + .seconds(60)) }
    }

    @Test func overrunsAndSuspends_neverCostTheDevice() {
        var recovery = CaptureRecovery(devices: 2)
        for second in 0..<10 {
            expect(.restart) { recovery.step(after: .overrun, of: 0, at: start + .seconds(second)) }
            expect(.restart) {
                recovery.step(after: .suspended, of: 0, at: start + .seconds(second))
            }
        }
    }

    @Test func aDeviceThatIsGone_isOpenedAgain() {
        var recovery = CaptureRecovery(devices: 1)
        expect(.reopen) { recovery.step(after: .gone("unplugged"), of: 0, at: start) }
    }

    @Test func silence_isTreatedOnce_andLeftAloneForAnHour() {
        var recovery = CaptureRecovery(devices: 1)
        expect(.restart) { recovery.step(after: .silent, of: 0, at: start) }
        #expect(recovery.treatsSilence(of: 0, at: start + .seconds(4)))
        expect(.reopen) { recovery.step(after: .silent, of: 0, at: start + .seconds(4)) }
        #expect(!recovery.treatsSilence(of: 0, at: start + .seconds(8)))
        #expect(!recovery.treatsSilence(of: 0, at: start + .seconds(3600)))
        #expect(recovery.treatsSilence(of: 0, at: start + .seconds(3605)))
    }

    /// A preferred device that is there and says nothing must not cost the sound of the other again and again.
    @Test(arguments: [CaptureError.stalled, .silent, .failed("EIO")])
    func returnsInVain_areOneFaultEach_andComeLessOften(fault: CaptureError) {
        var recovery = CaptureRecovery(devices: 2)
        var now = start
        var pauses: [Duration] = []
        for _ in 0..<6 {
            pauses.append(recovery.returnPause)
            recovery.returns(to: 0, at: now)
            expect(.next) { recovery.step(after: fault, of: 0, at: now + .seconds(5)) }
            #expect(recovery.treatsSilence(of: 0, at: now + .seconds(6)) == (fault != .silent))
            now = now + .seconds(20_000)
        }
        #expect(pauses.map { $0 / .seconds(60) } == [10, 20, 40, 80, 160, 160])
        // The other device fails, and it is its turn for once: that is no proof that it works.
        expect(.restart) { recovery.step(after: .stalled, of: 0, at: now) }
        #expect(recovery.returnPause == .seconds(9600))
        now = now + .seconds(60)
        // It works again: a fault of a day later is one like any other.
        recovery.returns(to: 0, at: now)
        expect(.restart) { recovery.step(after: fault, of: 0, at: now + .seconds(86_400)) }
        #expect(recovery.returnPause == .seconds(600))
    }

    @Test func silenceOfAllDevices_endsOnTheFirst() {
        var recovery = CaptureRecovery(devices: 2)
        var steps: [CaptureRecovery.Step] = []
        for number in 0..<6 {
            let device = number < 3 ? 0 : 1
            steps.append(
                recovery.step(after: .silent, of: device, at: start + .seconds(4 * number))
            )
        }
        #expect(steps == [.restart, .reopen, .next, .restart, .reopen, .next])
        #expect(!recovery.treatsSilence(of: 0, at: start + .seconds(24)))
        #expect(!recovery.treatsSilence(of: 1, at: start + .seconds(24)))
    }
}
