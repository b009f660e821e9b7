// The resources of the process as the status has them.
import Glibc
import Host

extension StatusReport.Daemon {
    /// Reads the memory and CPU time of this process.
    static func measured() -> Self {
        let resident = SystemFiles().number(after: "VmRSS:", in: "/proc/self/status")
        let broken = BrokenInvariants.shared
        return Self(
            running: true,
            pid: Int(getpid()),
            rssBytes: (resident ?? 0) * 1024,
            privateBytes: OwnProcess.privateBytes() ?? 0,
            cpuS: rounded(OwnProcess.cpuS, 100),
            brokenInvariants: broken.first.map { _ in broken.count },
            brokenInvariant: broken.first
        )
    }
}
