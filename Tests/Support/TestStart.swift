// The point in time at which tests begin.
package import Host

/// The point in time that tests start from.
package let testStart = Stamp(
    boot: BootInstant(nanoseconds: 1_000_000_000_000),
    wall: WallTime(milliseconds: 1_795_235_407_000)
)
