// Detects a running daemon by the lock that it holds.
import CLinux
import Glibc
import Host

/// The state of the lock on the state directory (flock(2)).
///
/// The socket is not enough: a daemon that died may have left it.
package enum DaemonPresence: Equatable {
    /// `pid`: the process that took the lock; 0 if unknown.
    case running(pid: Int)
    case gone
    /// The directory cannot be read.
    case unknown

    package init(stateDirectory path: String) {
        var figures = stat()
        guard stat(path, &figures) == 0 else {
            self = errno == ENOENT || errno == ENOTDIR ? .gone : .unknown
            return
        }
        // Every user can read /proc/locks, and reading it takes no lock.
        if let pid = Self.holder(DeviceNumber(figures.st_dev), figures.st_ino) {
            self = .running(pid: pid)
            return
        }
        // On some file systems /proc/locks has other device numbers: briefly try a shared lock.
        do {
            let directory = try Descriptor(opening: path, O_RDONLY | O_DIRECTORY)
            let isFree = flock(directory.number, LOCK_SH | LOCK_NB) == 0
            self = isFree ? .gone : .running(pid: 0)
        } catch {
            self = .unknown
        }
    }

    /// Finds the owner in `/proc/locks` (proc(5)): `2: FLOCK ADVISORY WRITE 6630 fe:00:162 0 EOF`.
    private static func holder(_ device: DeviceNumber, _ inode: UInt) -> Int? {
        let text = SmallText.read("/proc/locks", limit: 1 << 20) ?? ""
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count > 5, words[1] == "FLOCK", words[3] == "WRITE" else { continue }
            let place = words[5].split(separator: ":")
            guard place.count == 3, Int(place[0], radix: 16) == device.major,
                Int(place[1], radix: 16) == device.minor, UInt(place[2]) == inode
            else { continue }
            return Int(words[4]) ?? 0
        }
        return nil
    }
}
