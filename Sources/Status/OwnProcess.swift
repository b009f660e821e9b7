// The resources that this process uses, from /proc.
import CLinux
import Glibc
import Host

/// This process as the kernel counts it; nil where the kernel does not tell.
enum OwnProcess {
    static var cpuS: Double { Double(SystemClock.read(CLOCK_PROCESS_CPUTIME_ID)) / 1e9 }

    /// Private memory that the system cannot reclaim (proc(5), `Private_Dirty`).
    static func privateBytes(_ files: SystemFiles = SystemFiles()) -> Int64? {
        memory("Private_Dirty:", files)
    }

    /// Bytes of one kind of memory, by its line of `smaps_rollup`.
    static func memory(_ name: String, _ files: SystemFiles) -> Int64? {
        files.number(after: name, in: "/proc/self/smaps_rollup").map { $0 * 1024 }
    }

    /// The bytes handed to the storage layer since the process began (proc(5), `write_bytes`).
    static func writtenBytes(_ files: SystemFiles = SystemFiles()) -> Int64? {
        files.number(after: "write_bytes:", in: "/proc/self/io")
    }
}
