// Updates the index from the files while the receiver serves.
import Host
import SQLite
import Synchronization

/// The index's background thread: no gateway waits for it, and its failures never refuse a batch.
final class IndexFollower: Sendable {
    /// The wait after a failure.
    private static let pause = Duration.seconds(30)
    /// The number of unreadable files that are retried; more are retried at the next start.
    private static let mostUnread = 10_000

    /// The thread's state.
    private struct Progress {
        /// True if the index was damaged and rebuilt, and has not followed a batch since.
        var isRemade = false
        /// Unreadable files and their lengths.
        var unread: [String: Int64] = [:]
    }

    private let directory: String
    private let log: ServerLog
    private let grown: AppendedFiles
    private let catchingUp = Atomic(true)
    private let counted = Atomic(0)
    private let stop: StopSignal

    init(directory: String, log: ServerLog) throws {
        self.directory = directory
        self.log = log
        grown = try AppendedFiles()
        stop = try StopSignal()
    }

    /// Starts the thread, which first catches up and runs until `finish`.
    func start() throws {
        try startBackgroundThread("index") { [self] in run() }
    }

    /// Reports that files have grown; never blocks.
    func note(_ lengths: [String: Int64]) { grown.note(lengths) }

    /// True if the index is catching up after the start or a failure: more is missing than the last
    /// batches.
    var isBehind: Bool { catchingUp.load(ordering: .relaxed) }

    /// The number of changes of the index since the start.
    var changes: Int { counted.load(ordering: .relaxed) }

    /// Stops the thread after its current transaction.
    func finish() { stop.raise() }

    private func run() {
        var progress = Progress()
        while !stop.isRaised {
            do {
                let index = try FleetIndex.open(in: directory)
                try follow(IndexWriter(index, directory: directory), &progress)
            } catch {
                log.write("the page's index is delayed: \(error)")
                grown.noteMissed()
                catchingUp.store(true, ordering: .relaxed)
                // Rebuilt only once in a row: a faulty disk would damage it again and again.
                if (error as? SQLiteError)?.isDamage == true, !progress.isRemade {
                    progress.isRemade = true
                    FleetIndex.remove(in: directory)
                } else {
                    _ = stop.sleep(for: Self.pause)
                }
            }
        }
    }

    private func follow(_ writer: IndexWriter, _ progress: inout Progress) throws {
        while !stop.isRaised {
            var files = try takeNotes(writer)
            while !files.isEmpty, !stop.isRaised {
                files = try writer.follow(files) { note($0, $1, &progress) }
                counted.add(1, ordering: .relaxed)
            }
            guard grown.isEmpty else { continue }
            if isBehind, !stop.isRaised {
                try writer.noteWhole()
                catchingUp.store(false, ordering: .relaxed)
                counted.add(1, ordering: .relaxed)
            } else {
                progress.isRemade = false
            }
            grown.wait(until: stop, timeout: progress.unread.isEmpty ? nil : Self.pause)
            grown.note(progress.unread, again: true)
        }
    }

    /// Records the result of reading a file; logs an unreadable one once.
    private func note(_ file: ArchiveFile, _ trouble: Trouble?, _ progress: inout Progress) {
        guard let trouble else { return progress.unread[file.path] = nil }
        guard progress.unread[file.path] == nil, progress.unread.count < Self.mostUnread else {
            return
        }
        progress.unread[file.path] = file.length
        log.warn("\(file.path) is not in the page's index yet: \(trouble)")
    }

    private func takeNotes(_ writer: IndexWriter) throws -> [ArchiveFile] {
        // A rebuild that was killed has left the index incomplete.
        let isLeft = try !isBehind && !writer.isWhole() && !RebuildLock.isHeld(in: directory)
        if let files = grown.take(), !isLeft { return files }
        catchingUp.store(true, ordering: .relaxed)
        let known = try writer.lengths()
        return try ArchiveFiles.all(in: directory).filter { known[$0.path] != $0.length }
    }
}
