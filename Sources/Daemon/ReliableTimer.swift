// The program's only timer: it fires on a fixed grid of CLOCK_BOOTTIME.
import CLinux
import Glibc
package import Host

/// A grid of times on CLOCK_BOOTTIME: `phase` plus multiples of `interval`.
package struct TimerGrid: Sendable, Equatable {
    package var interval: Duration
    package var phase: Duration

    package init(interval: Duration, phase: Duration = .zero) {
        self.interval = max(interval, .milliseconds(1))
        self.phase = phase
    }

    /// Makes a grid whose phase depends on the device, so that a fleet does not tick together.
    ///
    /// The phase is the same at each start.
    package init(interval: Duration, device: String) {
        // FNV-1a, 64 bits: evenly distributed, and the same in every version of Swift.
        let hash = device.utf8.reduce(UInt64(0xcbf2_9ce4_8422_2325)) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01b3
        }
        let length = UInt64(max(1, interval.nanoseconds))
        self.init(interval: interval, phase: .nanoseconds(Int64(hash % length)))
    }

    /// Returns the first time of the grid after `now`, however many were missed.
    package func next(after now: BootInstant) -> BootInstant {
        let length = interval.nanoseconds
        let phase = phase.nanoseconds % length
        let since = now.nanoseconds - phase
        let ticks = since < 0 ? 0 : since / length + 1
        let next = BootInstant(nanoseconds: phase + ticks * length)
        invariant(next > now, "a timer fires later")
        return next
    }

    /// Returns when to wake for a time of the grid: at most `leeway` later.
    ///
    /// Prefers a whole second of boot time, because other timers wake then, too.
    package static func wake(for moment: BootInstant, leeway: Duration) -> BootInstant {
        let second: Int64 = 1_000_000_000
        let whole = (moment.nanoseconds + second - 1) / second * second
        invariant(whole >= moment.nanoseconds, "nobody wakes before the time")
        return whole - moment.nanoseconds <= leeway.nanoseconds
            ? BootInstant(nanoseconds: whole) : moment
    }
}

/// Calls a handler at each time of a grid, on a separate thread, one call at a time.
///
/// Times that pass while the handler runs, or while the machine sleeps, cause at most one call
/// afterwards; the next one is on the grid.
package final class ReliableTimer: Sendable {
    private let thread: StoppableThread
    private let upcoming: StateBox<BootInstant?>

    package init(
        _ name: String,
        grid: TimerGrid,
        clock: any HostClock,
        leeway: Duration = .zero,
        handler: @escaping @Sendable () -> Void
    ) throws {
        let number = waypost_boottime_timer()
        guard number >= 0 else { throw SystemError("timerfd_create", on: name, code: -number) }
        let upcoming = StateBox<BootInstant?>(nil)
        self.upcoming = upcoming
        thread = try StoppableThread(name) { stop in
            let timer = Descriptor(owning: number)
            while !stop.isRaised {
                let next = grid.next(after: clock.now())
                upcoming.update { $0 = next }
                let wake = TimerGrid.wake(for: next, leeway: leeway)
                guard waypost_arm_timer(timer.number, wake.nanoseconds) == 0 else { return }
                var entries = [PollEntry(timer.number), PollEntry(stop.descriptor)]
                _ = wait(for: &entries)
                if entries[0].isReady, !stop.isRaised { handler() }
            }
        }
    }

    /// When the handler is called next.
    package var next: BootInstant? { upcoming.value }

    /// Stops the timer and waits for its handler; returns false if that still ran at `deadline`.
    ///
    /// That thread is abandoned. Must not be called from the handler.
    @discardableResult package func cancel(by deadline: BootInstant) -> Bool {
        thread.stop(by: deadline)
    }
}
