// The resources that this process uses, from /proc.
import CLinux
import Glibc
import Host

extension StatusReport.Daemon {
    /// Reads the memory and CPU time of this process.
    static func measured() -> Self {
        Self(
            running: true,
            pid: Int(getpid()),
            rssBytes: number(after: "VmRSS:", in: "/proc/self/status") * 1024,
            // Private memory that the system cannot reclaim (proc(5), `Private_Dirty`).
            privateBytes: number(after: "Private_Dirty:", in: "/proc/self/smaps_rollup") * 1024,
            cpuS: rounded(Double(SystemClock.read(CLOCK_PROCESS_CPUTIME_ID)) / 1e9, 100)
        )
    }

    /// The bytes handed to the storage layer since the process began (proc(5), `write_bytes`).
    static var writtenBytes: Int64 { number(after: "write_bytes:", in: "/proc/self/io") }

    private static func number(after name: String, in path: String) -> Int64 {
        SystemFiles().number(after: name, in: path) ?? 0
    }
}
