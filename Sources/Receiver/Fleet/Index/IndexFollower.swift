// Keeps the index behind the files while the receiver serves.
import Host
import SQLite
import Synchronization

/// A thread of its own: no gateway waits for it, and nothing that fails here refuses a batch.
final class IndexFollower: Sendable {
    /// Before what failed is tried again.
    private static let pause = Duration.seconds(30)
    /// Files that could not be read and are tried again; more of them are at the next start.
    private static let mostUnread = 10_000

    /// What the thread knows.
    private struct Progress {
        /// It was damaged and made anew, and has not followed a batch since.
        var isRemade = false
        /// Files that could not be read, and their lengths.
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

    /// Begins with what is not in the index yet; ends with `finish`.
    func start() throws {
        try startBackgroundThread("index") { [self] in run() }
    }

    /// Files have grown; waits for nobody.
    func note(_ lengths: [String: Int64]) { grown.note(lengths) }

    /// Whether the archive is read from its beginning or after a failure: more is missing than the last batches.
    var isBehind: Bool { catchingUp.load(ordering: .relaxed) }

    /// How often the index has changed since the start.
    var changes: Int { counted.load(ordering: .relaxed) }

    /// The thread ends with the transaction that it is in.
    func finish() { stop.raise() }

    private func run() {
        var progress = Progress()
        while !stop.isRaised {
            do {
                let index = try FleetIndex.open(in: directory)
                try follow(IndexWriter(index, directory: directory), &progress)
            } catch {
                log.write("the index of the page waits: \(error)")
                grown.noteMissed()
                catchingUp.store(true, ordering: .relaxed)
                // Made anew once: on a disk that damages it again, it would be made for ever.
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

    /// What came of reading a file; one that could not be read is told once.
    private func note(_ file: ArchiveFile, _ trouble: Trouble?, _ progress: inout Progress) {
        guard let trouble else { return progress.unread[file.path] = nil }
        guard progress.unread[file.path] == nil, progress.unread.count < Self.mostUnread else {
            return
        }
        progress.unread[file.path] = file.length
        log.warn("\(file.path) is not read into the index of the page: \(trouble)")
    }

    private func takeNotes(_ writer: IndexWriter) throws -> [ArchiveFile] {
        // A rebuild that was killed has left it half read.
        let isLeft = try !isBehind && !writer.isWhole() && !RebuildLock.isHeld(in: directory)
        if let files = grown.take(), !isLeft { return files }
        catchingUp.store(true, ordering: .relaxed)
        let known = try writer.lengths()
        return try ArchiveFiles.all(in: directory).filter { known[$0.path] != $0.length }
    }
}
