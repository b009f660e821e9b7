// The grid that everything periodic runs on, and the timer that follows it.
import Foundation
import Host
import Testing

@testable import Gateway

@Suite struct TimerTests {
    private func at(_ milliseconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: milliseconds * 1_000_000)
    }

    @Test func grid_keepsItsPhase_howeverLateItIsAsked() {
        let grid = TimerGrid(interval: .seconds(10), phase: .seconds(3))
        #expect(grid.next(after: at(0)) == at(3000))
        #expect(grid.next(after: at(2999)) == at(3000))
        #expect(grid.next(after: at(3000)) == at(13_000))
        // Ninety missed ticks come once.
        #expect(grid.next(after: at(905_500)) == at(913_000))
    }

    @Test func devices_haveAPhaseOfTheirOwn_theSameEachTime() {
        let phases = (0..<1000).map {
            TimerGrid(interval: .seconds(300), device: "device-\($0)").phase
        }
        #expect(phases.allSatisfy { $0 >= .zero && $0 < .seconds(300) })
        #expect(TimerGrid(interval: .seconds(300), device: "device-1").phase == phases[1])
        // Spread over the interval: each tenth of it has its share.
        for tenth in 0..<10 {
            let share = phases.filter { Int($0 / .seconds(30)) == tenth }.count
            #expect((60...140).contains(share))
        }
    }

    @Test func timer_ticks_andAfterCancelNeverAgain() throws {
        let ticks = StateBox(0)
        let timer = try ReliableTimer(
            "test",
            grid: TimerGrid(interval: .milliseconds(5)),
            clock: SystemClock()
        ) { ticks.update { $0 += 1 } }
        let deadline = Date().addingTimeInterval(30)
        while ticks.value < 3, Date() < deadline { usleep(1000) }
        #expect(ticks.value >= 3)
        timer.cancel()
        let final = ticks.value
        // Cancel has returned: no handler runs, and the thread that would call it has ended.
        timer.cancel()
        #expect(ticks.value == final)
    }
}
