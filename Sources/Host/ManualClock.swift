// A clock that a test sets by hand.
import Synchronization

/// A boot clock and a wall clock that move only when a test moves them; the wall clock can step
/// alone, and the machine can be suspended.
package final class ManualClock: HostClock {
    private let time: Mutex<Stamp>
    private let sleep = Mutex(Duration.zero)

    package init(_ start: Stamp) {
        time = Mutex(start)
    }

    package func now() -> BootInstant { time.withLock { $0.boot } }

    package func wall() -> WallTime { time.withLock { $0.wall } }

    package func suspended() -> Duration { sleep.withLock { $0 } }

    package func suspend(for duration: Duration) {
        sleep.withLock { $0 += duration }
        advance(by: duration)
    }

    package func advance(by duration: Duration) {
        time.withLock { $0 = $0.advanced(by: duration) }
    }

    /// Steps the wall clock, as settimeofday(2) does; boot time does not change.
    package func stepWall(to wall: WallTime) {
        time.withLock { $0.wall = wall }
    }
}
