// A clock that a test turns by hand.
import Synchronization

/// Two clocks that move only when told to, apart from each other if wanted (a step of the wall clock).
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

    /// What settimeofday does: the wall clock jumps, boot time does not notice.
    package func stepWall(to wall: WallTime) {
        time.withLock { $0.wall = wall }
    }
}
