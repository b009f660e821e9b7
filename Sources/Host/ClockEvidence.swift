// Whether the system vouches for the wall clock at this moment.
import CLinux
import Glibc

package enum ClockEvidence {
    /// A bound on the clock's error below 16 s, as systemd-timedated has it.
    ///
    /// The kernel sets the bound to 16 s at boot and whenever somebody sets the clock by hand; an NTP client
    /// makes it small, and it grows by 1.8 s an hour. `stepped` is the wall time after the last step seen.
    package static func systemVouches(stepped: WallTime?) -> Bool {
        let bound = waypost_clock_maxerror()
        if bound >= 0 { return bound < 16_000_000 }
        // adjtimex may be forbidden by a sandbox; systemd-timesyncd leaves a mark each time it sets the clock.
        return isFresh("/run/systemd/timesync/synchronized", since: stepped)
    }

    /// A mark that is older than the last step, or in the future, says nothing about the clock as it is now.
    package static func isFresh(_ path: String, since stepped: WallTime?) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        let second = Int64(status.st_mtim.tv_sec)
        let now = SystemClock().wall().milliseconds / 1000
        return second <= now + 1 && second >= (stepped?.milliseconds ?? 0) / 1000 - 1
    }
}
