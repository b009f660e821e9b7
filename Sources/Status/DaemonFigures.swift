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
            rssBytes: field("VmRSS:", of: "/proc/self/status") * 1024,
            // Private memory that the system cannot reclaim (proc(5), `Private_Dirty`).
            privateBytes: field("Private_Dirty:", of: "/proc/self/smaps_rollup") * 1024,
            cpuS: rounded(Double(SystemClock.read(CLOCK_PROCESS_CPUTIME_ID)) / 1e9, 100)
        )
    }

    /// The bytes handed to the storage layer since the process began (proc(5), `write_bytes`).
    static var writtenBytes: Int64 { field("write_bytes:", of: "/proc/self/io") }

    private static func field(_ name: String, of path: String) -> Int64 {
        let text = SmallText.read(path) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
            .flatMap { Int64($0) } ?? 0
    }
}
