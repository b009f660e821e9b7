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

    /// The moments of a grid that a clock sees while something is done to it.
    private func moments(_ clock: ManualClock, _ change: (ManualClock) -> Void) -> [BootInstant] {
        let grid = TimerGrid(interval: .seconds(300), phase: .seconds(17))
        let before = grid.next(after: clock.now())
        change(clock)
        return [before, grid.next(after: clock.now())]
    }

    @Test(arguments: [
        "1970-01-01T00:00:00Z", "2019-02-14T00:00:00Z", "2038-01-19T03:14:08Z",
        "2106-02-07T06:28:16Z",
    ])
    func stepOfTheWallClock_movesNoTick(text: String) throws {
        let wrong = try #require(WallTime(rfc3339: text))
        let clock = ManualClock(Stamp(boot: at(100_000), wall: WallTime(milliseconds: 0)))
        #expect(moments(clock) { $0.stepWall(to: wrong) } == [at(317_000), at(317_000)])
    }

    @Test func suspend_costsTheTicksInIt_andTheNextIsOnTheGrid() {
        let clock = ManualClock(Stamp(boot: at(100_000), wall: WallTime(milliseconds: 0)))
        // Asleep for eight hours and a bit: the tick that is due comes at once, the next on the grid.
        let moments = moments(clock) { $0.advance(by: .seconds(8 * 3600 + 250)) }
        #expect(moments == [at(317_000), at(29_417_000)])
        #expect(clock.now() > moments[0])
        #expect(moments[1] - clock.now() <= .seconds(300))
    }

    /// Boot time as it is, and a wall clock that is another one at each look.
    private final class RestlessClock: HostClock {
        private let looks = StateBox(0)

        func now() -> BootInstant { SystemClock().now() }

        func wall() -> WallTime {
            let look = looks.update { count -> Int in
                count += 1
                return count
            }
            return WallTime(milliseconds: Int64(look % 2) * 4_294_967_296_000)
        }
    }

    @Test func timer_staysOnItsGrid_whileTheWallClockJumps() throws {
        let clock = RestlessClock()
        let ticks = StateBox([BootInstant]())
        let timer = try ReliableTimer(
            "test",
            grid: TimerGrid(interval: .milliseconds(20), phase: .milliseconds(7)),
            clock: clock
        ) {
            _ = clock.wall()
            ticks.update { $0.append(clock.now()) }
        }
        let deadline = Date().addingTimeInterval(30)
        while ticks.value.count < 10, Date() < deadline {
            let next = timer.next
            #expect(next.map { $0.nanoseconds % 20_000_000 == 7_000_000 } != false)
            usleep(1000)
        }
        timer.cancel()
        let seen = ticks.value
        #expect(seen.count >= 10)
        // Each moment of the grid comes at most once, and never early.
        let places = seen.map { ($0.nanoseconds - 7_000_000) / 20_000_000 }
        #expect(Set(places).count == places.count)
        #expect(places == places.sorted())
    }
}
