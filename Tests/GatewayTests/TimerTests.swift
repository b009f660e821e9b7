// The grid of periodic timers, and the timer that follows it.
import Foundation
import Host
import Support
import Testing

import Daemon

@Suite struct TimerTests {
    private func at(_ milliseconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: milliseconds * 1_000_000)
    }

    @Test func grid_keepsItsPhase_howeverLateItIsAsked() {
        let grid = TimerGrid(interval: .seconds(10), phase: .seconds(3))
        #expect(grid.next(after: at(0)) == at(3000))
        #expect(grid.next(after: at(2999)) == at(3000))
        #expect(grid.next(after: at(3000)) == at(13_000))
        // Ninety missed ticks cause one.
        #expect(grid.next(after: at(905_500)) == at(913_000))
    }

    @Test func devices_haveAPhaseOfTheirOwn_theSameEachTime() {
        let phases = (0..<1000).map {
            TimerGrid(interval: .seconds(300), device: "device-\($0)").phase
        }
        #expect(phases.allSatisfy { $0 >= .zero && $0 < .seconds(300) })
        #expect(TimerGrid(interval: .seconds(300), device: "device-1").phase == phases[1])
        // The phases are spread over the interval: each tenth has its share.
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
        try waitUntil("three ticks") { ticks.value >= 3 }
        timer.cancel()
        let final = ticks.value
        // Cancel has returned: no handler runs, and its thread has ended.
        timer.cancel()
        #expect(ticks.value == final)
    }

    /// Returns the grid times that a clock reaches while `body` runs.
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
        // After eight hours of sleep: the overdue tick comes at once, the next on the grid.
        let moments = moments(clock) { $0.advance(by: .seconds(8 * 3600 + 250)) }
        #expect(moments == [at(317_000), at(29_417_000)])
        #expect(clock.now() > moments[0])
        #expect(moments[1] - clock.now() <= .seconds(300))
    }

    /// A clock with real boot time, and a wall clock that differs at each call.
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
        try waitUntil("ten ticks") {
            let next = timer.next
            #expect(next.map { $0.nanoseconds % 20_000_000 == 7_000_000 } != false)
            return ticks.value.count >= 10
        }
        timer.cancel()
        let seen = ticks.value
        #expect(seen.count >= 10)
        // Each grid time comes at most once, and never early.
        let places = seen.map { ($0.nanoseconds - 7_000_000) / 20_000_000 }
        #expect(Set(places).count == places.count)
        #expect(places == places.sorted())
    }

    @Test func slowHandler_neverOverlaps_andMissedTicksAreOne() throws {
        let running = StateBox(0)
        let maximum = StateBox(0)
        let starts = StateBox([BootInstant]())
        let mayEnd = StateBox(false)
        let timer = try ReliableTimer(
            "test",
            grid: TimerGrid(interval: .milliseconds(5)),
            clock: SystemClock()
        ) {
            let now = running.update { count -> Int in
                count += 1
                return count
            }
            maximum.update { $0 = max($0, now) }
            starts.update { $0.append(SystemClock().now()) }
            // The first call lasts for many grid intervals.
            let until = SystemClock().now() + .milliseconds(100)
            while !mayEnd.value, SystemClock().now() < until { usleep(500) }
            mayEnd.update { $0 = true }
            running.update { $0 -= 1 }
        }
        try waitUntil("four starts") { starts.value.count >= 4 }
        timer.cancel()
        let seen = starts.value
        #expect(seen.count >= 4)
        #expect(maximum.value == 1)
        // Twenty intervals passed in the meantime; their ticks did not come at once afterwards.
        let places = seen.map { $0.nanoseconds / 5_000_000 }
        #expect(Set(places).count == places.count)
        #expect(places[1] - places[0] >= 20)
    }

    @Test func cancel_waitsForTheHandlerThatRuns() throws {
        let isIn = StateBox(false)
        let isOut = StateBox(false)
        let timer = try ReliableTimer(
            "test",
            grid: TimerGrid(interval: .milliseconds(2)),
            clock: SystemClock()
        ) {
            isIn.update { $0 = true }
            let until = SystemClock().now() + .milliseconds(50)
            while SystemClock().now() < until { usleep(500) }
            isOut.update { $0 = true }
        }
        try waitUntil("the handler") { isIn.value }
        timer.cancel()
        #expect(isOut.value)
    }

    @Test func leeway_wakesOnAWholeSecond_ifOneIsNear() {
        let moment = at(10_300)
        #expect(TimerGrid.wake(for: moment, leeway: .zero) == moment)
        #expect(TimerGrid.wake(for: moment, leeway: .milliseconds(699)) == moment)
        #expect(TimerGrid.wake(for: moment, leeway: .milliseconds(700)) == at(11_000))
        #expect(TimerGrid.wake(for: at(11_000), leeway: .seconds(1)) == at(11_000))
    }
}
