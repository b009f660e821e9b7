// The kernel's two clocks, and the stamp that each record carries of both.
import CLinux
import Glibc

/// A point in time on CLOCK_BOOTTIME: nanoseconds since boot, including suspend, never stepped.
package struct BootInstant: Sendable, Hashable, Comparable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    package var milliseconds: Int64 { nanoseconds / 1_000_000 }

    package static func < (left: Self, right: Self) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    package static func + (left: Self, right: Duration) -> Self {
        Self(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }

    package static func - (left: Self, right: Duration) -> Self {
        Self(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }

    package static func - (left: Self, right: Self) -> Duration {
        .nanoseconds(left.nanoseconds &- right.nanoseconds)
    }
}

/// A point in time on CLOCK_REALTIME: milliseconds since 1970-01-01 UTC, as set on this device.
package struct WallTime: Sendable, Hashable, Comparable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// 2026-11-01, when this program was written: a correct clock never shows an earlier time.
    package static let release = Self(milliseconds: 1_793_491_200_000)

    package static func < (left: Self, right: Self) -> Bool {
        left.milliseconds < right.milliseconds
    }

    package static func + (left: Self, right: Duration) -> Self {
        Self(milliseconds: left.milliseconds &+ right.nanoseconds / 1_000_000)
    }
}

/// Both clocks, read together when a record was captured.
package struct Stamp: Sendable, Hashable {
    package var boot: BootInstant
    package var wall: WallTime

    package init(boot: BootInstant, wall: WallTime) {
        self.boot = boot
        self.wall = wall
    }

    /// Returns the wall time at another point of the same boot, as if nobody had set the clock
    /// between.
    package func wall(at moment: BootInstant) -> WallTime { wall + (moment - boot) }

    /// Returns this stamp's wall time by the clock as it is `now`, which may have been set since.
    ///
    /// A difference below a second is ignored: the two clocks are not read at the same instant, and
    /// one point in time should always be reported with the same text.
    package func wall(by now: Self) -> WallTime {
        let corrected = now.wall(at: boot)
        return (corrected.milliseconds &- wall.milliseconds).magnitude < 1000 ? wall : corrected
    }

    /// Returns the same pair of clocks, later by `duration` (earlier if it is negative).
    package func advanced(by duration: Duration) -> Self {
        Self(boot: boot + duration, wall: wall + duration)
    }
}

/// The clocks that a component reads; injected, so that a test can set them.
package protocol HostClock: Sendable {
    func now() -> BootInstant
    func wall() -> WallTime
    /// The time since boot in which the machine was suspended.
    func suspended() -> Duration
    /// The time to add to `now()` for a clock that is not slewed, as an NTP client does by up to 10 %.
    func slewed() -> Duration
}

extension HostClock {
    package func suspended() -> Duration { .zero }

    package func slewed() -> Duration { .zero }

    package func stamp() -> Stamp {
        Stamp(boot: now(), wall: wall())
    }
}

/// The kernel's clocks (clock_gettime(2)).
package struct SystemClock: HostClock {
    package init() {}

    package func now() -> BootInstant { BootInstant(nanoseconds: Self.read(CLOCK_BOOTTIME)) }

    package func suspended() -> Duration {
        let awake = Self.read(CLOCK_MONOTONIC)
        return .nanoseconds(Self.read(CLOCK_BOOTTIME) - awake)
    }

    package func slewed() -> Duration {
        var slewed: Int64 = 0
        // Reads again if this thread was interrupted between the clocks.
        for _ in 0..<4 {
            let before = Self.read(CLOCK_MONOTONIC)
            slewed = Self.read(CLOCK_MONOTONIC_RAW) - before
            if Self.read(CLOCK_MONOTONIC) - before < 1_000_000 { break }
        }
        return .nanoseconds(slewed)
    }

    package func wall() -> WallTime {
        WallTime(milliseconds: Self.read(CLOCK_REALTIME) / 1_000_000)
    }

    /// Returns the time of any clock in nanoseconds.
    package static func read(_ clock: Int32) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

extension Duration {
    /// The whole duration in nanoseconds; saturates at the ends of Int64 (292 years).
    package var nanoseconds: Int64 {
        // `_high` and `_low` are public fields of a frozen struct. `components` divides 128 bits
        // twice, and this runs about ten times per sighting.
        if _high == 0 { return Int64(_low / Self.attoseconds) }
        let isNegative = _high < 0
        let low = isNegative ? 0 &- _low : _low
        let high = UInt64(bitPattern: isNegative ? ~_high &+ (_low == 0 ? 1 : 0) : _high)
        // Values from this limit on do not fit into Int64.
        guard high < Self.attoseconds / 2 else { return isNegative ? .min : .max }
        let magnitude = Int64(Self.attoseconds.dividingFullWidth((high, low)).quotient)
        return isNegative ? -magnitude : magnitude
    }

    /// Attoseconds per nanosecond.
    private static let attoseconds: UInt64 = 1_000_000_000

    package var milliseconds: Int64 { nanoseconds / 1_000_000 }

    package var inSeconds: Double { Double(nanoseconds) / 1e9 }
}
