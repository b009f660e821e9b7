// Files that have grown, noted for a thread that reads them behind the archive.
import Host
import Synchronization

/// In bounded memory, however far behind its reader is; any thread may use it.
final class AppendedFiles: Sendable {
    /// More files than that are looked for in the archive.
    private static let most = 10_000

    private struct Notes {
        var lengths: [String: Int64] = [:]
        /// Not all are known: the archive is to be asked.
        var isIncomplete = true
    }

    private let notes = Mutex(Notes())
    private let wakeup: Wakeup

    init() throws { wakeup = try Wakeup() }

    /// Committed lengths by the files' paths; waits for nobody.
    ///
    /// `again`: they are older than what is noted of the same files, and wake nobody.
    func note(_ lengths: [String: Int64], again: Bool = false) {
        guard !lengths.isEmpty else { return }
        notes.withLock {
            if $0.lengths.count > Self.most {
                $0.lengths = [:]
                $0.isIncomplete = true
            }
            $0.lengths.merge(lengths) { again ? $0 : $1 }
        }
        if !again { wakeup.signal() }
    }

    /// Something was not read: the archive is to be asked.
    func noteMissed() { notes.withLock { $0.isIncomplete = true } }

    /// Those noted since the last time; nil: not all are known, and the archive is to be asked.
    func take() -> [ArchiveFile]? {
        let taken = notes.withLock { notes in
            let taken = notes
            notes.lengths = [:]
            notes.isIncomplete = false
            return taken
        }
        guard !taken.isIncomplete else { return nil }
        return taken.lengths.compactMap { ArchiveFile(path: $0, length: $1) }
    }

    var isEmpty: Bool { notes.withLock { $0.lengths.isEmpty && !$0.isIncomplete } }

    /// Returns when a file has grown, `stop` was raised, or the time is over.
    func wait(until stop: StopSignal, timeout: Duration? = nil) {
        var entries = [PollEntry(wakeup.descriptor), PollEntry(stop.descriptor)]
        _ = Host.wait(for: &entries, timeout: timeout)
        wakeup.clear()
    }
}
