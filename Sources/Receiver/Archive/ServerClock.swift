// Whether this server's own clock can judge the date of a record.
internal import CLinux

enum ServerClock {
    /// The kernel vouches for it: its bound on the clock's error is below 16 s, as systemd-timedated has it.
    ///
    /// The bound is 16 s at boot and after somebody has set the clock by hand, until an NTP client makes it small.
    /// Where the kernel may not be asked, the answer is no.
    static func isSynced() -> Bool {
        let bound = waypost_clock_maxerror()
        return bound >= 0 && bound < 16_000_000
    }
}
