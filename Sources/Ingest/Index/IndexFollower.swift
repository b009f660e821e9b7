// Keeps the index behind the files while the receiver serves.
import Host
import SQLite
import Synchronization

/// A thread of its own: no gateway waits for it, and nothing that fails here refuses a batch.
final class IndexFollower: Sendable {
    /// Before what failed is tried again.
    private static let pause = Duration.seconds(30)

    private let directory: String
    private let log: ServerLog
    private let grown: GrownFiles
    private let catchingUp = Atomic(true)
    private let counted = Atomic(0)
    private let stop: StopSignal

    init(directory: String, log: ServerLog) throws {
        self.directory = directory
        self.log = log
        grown = try GrownFiles()
        stop = try StopSignal()
    }

    /// Begins with what is not in the index yet; ends with `finish`.
    func start() throws {
        try startBehindGateways("index") { [self] in run() }
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
        var isBroken = false
        while !stop.isRaised {
            do {
                try follow(IndexWriter(FleetIndex.open(in: directory), directory: directory))
            } catch {
                log.write("the index of the page waits: \(error)")
                grown.noteMissed()
                catchingUp.store(true, ordering: .relaxed)
                // Made anew once: on a disk that damages it again, it would be made for ever.
                if (error as? SQLiteError)?.isDamage == true, !isBroken {
                    isBroken = true
                    FleetIndex.remove(in: directory)
                } else {
                    _ = stop.sleep(for: Self.pause)
                }
            }
        }
    }

    private func follow(_ writer: IndexWriter) throws {
        while !stop.isRaised {
            var files = try takeNotes(writer)
            while !files.isEmpty, !stop.isRaised {
                files = try writer.follow(files)
                counted.add(1, ordering: .relaxed)
            }
            guard grown.isEmpty else { continue }
            if isBehind, !stop.isRaised {
                try writer.noteWhole()
                catchingUp.store(false, ordering: .relaxed)
                counted.add(1, ordering: .relaxed)
            }
            grown.wait(until: stop)
        }
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
