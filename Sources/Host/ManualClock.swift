// A clock that a test sets by hand.
import Synchronization

/// A boot clock and a wall clock that move only when a test moves them; the wall clock can step
/// alone.
package final class ManualClock: HostClock {
    private let time: Mutex<Stamp>

    package init(_ start: Stamp) {
        time = Mutex(start)
    }

    package func now() -> BootInstant { time.withLock { $0.boot } }

    package func wall() -> WallTime { time.withLock { $0.wall } }

    package func advance(by duration: Duration) {
        time.withLock { $0 = $0.advanced(by: duration) }
    }

    /// Steps the wall clock, as settimeofday(2) does; boot time does not change.
    package func stepWall(to wall: WallTime) {
        time.withLock { $0.wall = wall }
    }
}
