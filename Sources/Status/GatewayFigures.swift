// The figures of the gateway's process, which only that process may read.
import Glibc
package import Host

/// The use of resources since the start of the process; nil where the kernel does not tell.
///
/// The service has capabilities, so no other user's process may read its memory map or I/O.
package struct GatewayFigures: Codable, Sendable, Equatable {
    package struct Thread: Codable, Sendable, Equatable {
        package var id: Int
        package var name: String
        /// Voluntary context switches.
        package var wakeups: Int64
    }

    package var pid: Int
    /// Seconds from the boot to the start of the gateway, its first record and first upload.
    package var startedS = 0.0
    package var firstRecordS: Double?
    package var firstUploadS: Double?
    package var pssBytes: Int64?
    /// Private memory that the system cannot reclaim.
    package var privateBytes: Int64?
    package var residentBytes: Int64?
    package var cpuS: Double
    /// Bytes handed to the storage layer (proc(5), `write_bytes`).
    package var writtenBytes: Int64?
    package var threads: [Thread]
    package var audioOverruns = 0
    /// Bytes of upload bodies by stream.
    package var bodyBytes: [String: Int64] = [:]
    /// The newest time of a GNSS receiver, and the boot time at which it came.
    package var gnssMs: Int64?
    package var gnssBootNs: Int64?

    /// Reads the part that the kernel knows.
    package init(_ files: SystemFiles = SystemFiles()) {
        pid = Int(getpid())
        pssBytes = OwnProcess.memory("Pss:", files)
        privateBytes = OwnProcess.privateBytes(files)
        residentBytes = OwnProcess.memory("Rss:", files)
        cpuS = OwnProcess.cpuS
        writtenBytes = OwnProcess.writtenBytes(files)
        threads = files.names(in: "/proc/self/task").compactMap { Thread($0, files) }
    }
}

extension GatewayFigures.Thread {
    /// Returns nil for a thread that has ended.
    fileprivate init?(_ task: String, _ files: SystemFiles) {
        let folder = "/proc/self/task/\(task)"
        guard let id = Int(task), let name = files.text("\(folder)/comm"),
            let count = files.number(after: "voluntary_ctxt_switches:", in: "\(folder)/status")
        else { return nil }
        self.init(id: id, name: name, wakeups: count)
    }
}
