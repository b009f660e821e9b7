// Reports files that have grown to a thread that follows the archive.
import Host
import Synchronization

/// The files that have grown since the reader last asked; bounded memory, thread-safe.
final class AppendedFiles: Sendable {
    /// Above this number of files, the reader has to list the archive.
    private static let most = 10_000

    private struct Notes {
        var lengths: [String: Int64] = [:]
        /// True if files may be missing, so that the reader has to list the archive.
        var isIncomplete = true
    }

    private let notes = Mutex(Notes())
    private let wakeup: Wakeup

    init() throws { wakeup = try Wakeup() }

    /// Adds committed lengths by path; never blocks.
    ///
    /// `again`: a retry with older lengths, which neither replaces newer ones nor wakes the reader.
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

    /// Makes the reader list the archive, after something was not read.
    func noteMissed() { notes.withLock { $0.isIncomplete = true } }

    /// Returns the files added since the last call; nil if the archive has to be listed.
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

    /// Waits until a file has grown, `stop` is raised, or the time is over.
    func wait(until stop: StopSignal, timeout: Duration? = nil) {
        var entries = [PollEntry(wakeup.descriptor), PollEntry(stop.descriptor)]
        _ = Host.wait(for: &entries, timeout: timeout)
        wakeup.clear()
    }
}
