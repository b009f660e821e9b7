// Asks the system whether the wall clock can be trusted now.
import CLinux
import Glibc

/// Evidence that the wall clock is right.
package enum ClockEvidence {
    /// Returns true if the kernel bounds the clock's error below 16 s, the test of
    /// systemd-timedated; nil if it may not be asked.
    ///
    /// The kernel sets the bound to 16 s at boot and whenever somebody sets the clock by hand. An
    /// NTP client lowers it; from there it grows by 1.8 s per hour.
    package static func kernelVouches() -> Bool? {
        let bound = waypost_clock_maxerror()
        return bound >= 0 ? bound < 16_000_000 : nil
    }

    /// Asks the kernel, or systemd-timesyncd if a sandbox forbids that.
    ///
    /// `stepped` is the wall time after the last clock step seen.
    package static func systemVouches(stepped: WallTime?) -> Bool {
        if let isSynced = kernelVouches() { return isSynced }
        // systemd-timesyncd touches a file each time it sets the clock.
        return isFresh("/run/systemd/timesync/synchronized", since: stepped)
    }

    /// Returns true if the file was touched after the last clock step and not in the future.
    package static func isFresh(_ path: String, since stepped: WallTime?) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        let second = Int64(status.st_mtim.tv_sec)
        let now = SystemClock().wall().milliseconds / 1000
        return second <= now + 1 && second >= (stepped?.milliseconds ?? 0) / 1000 - 1
    }
}
