// The resources that this process uses, from /proc.
import CLinux
import Glibc
import Host

/// Memory, CPU time and bytes written of this process.
package struct ProcessFigures {
    var residentBytes: Int64 = 0
    /// Private memory that the system cannot reclaim (proc(5), `Private_Dirty`).
    var privateBytes: Int64 = 0
    var cpuSeconds = 0.0
    /// Bytes handed to the storage layer since the process began (proc(5), `write_bytes`).
    var writtenBytes: Int64 = 0

    init() {
        residentBytes = Self.field("VmRSS:", of: "/proc/self/status") * 1024
        privateBytes = Self.field("Private_Dirty:", of: "/proc/self/smaps_rollup") * 1024
        writtenBytes = Self.field("write_bytes:", of: "/proc/self/io")
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        cpuSeconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func field(_ name: String, of path: String) -> Int64 {
        let text = SmallText.read(path) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
            .flatMap { Int64($0) } ?? 0
    }
}
