// Why the last start failed, for those who look while no gateway runs.
import Glibc
import Host
package import Setup

/// The file in the runtime directory with the error of the last start; a start that succeeds
/// removes it.
package enum StartErrorFile {
    private static let name = "start-error"

    /// Writes the error, and has the LED show it; not while another gateway uses these directories.
    package static func write(_ error: String, _ configuration: Configuration) {
        let presence = DaemonPresence(stateDirectory: configuration.stateDirectory)
        if case .running(let pid) = presence, pid != getpid() { return }
        let directory = configuration.runtimeDirectory
        let text = error.split(separator: "\n").joined(separator: "; ")
        // Without the directory there is nobody to tell but the log, which has it.
        try? SmallFile.replace(
            "\(directory)/\(name)",
            Array(text.utf8),
            mode: 0o644,
            isSynced: false
        )
        LEDFile(runtimeDirectory: directory).write(.critical, configuration.led)
    }

    package static func read(in directory: String) -> String? {
        SmallText.read("\(directory)/\(name)", followsLink: false)?.blanked
    }

    package static func clear(in directory: String) { unlink("\(directory)/\(name)") }
}
