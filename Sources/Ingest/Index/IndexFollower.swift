// Keeps the index behind the files while the receiver serves.
import Host
import SQLite
import Synchronization

/// A thread of its own: no gateway waits for it, and nothing that fails here refuses a batch.
final class IndexFollower: Sendable {
    /// More files than that are looked for in the archive.
    private static let mostNoted = 10_000
    /// Before what failed is tried again.
    private static let pause = Duration.seconds(30)

    private struct Notes {
        var lengths: [String: Int64] = [:]
        /// Not all are known: the archive is to be asked.
        var isIncomplete = true
    }

    private let directory: String
    private let log: ServerLog
    private let notes = Mutex(Notes())
    private let catchingUp = Atomic(true)
    private let counted = Atomic(0)
    private let wakeup: Wakeup
    private let stop: StopSignal

    init(directory: String, log: ServerLog) throws {
        self.directory = directory
        self.log = log
        wakeup = try Wakeup()
        stop = try StopSignal()
    }

    /// Begins with what is not in the index yet; ends with `finish`.
    func start() throws {
        try startBehindGateways("index") { [self] in run() }
    }

    /// Files have grown; waits for nobody.
    func note(_ lengths: [String: Int64]) {
        guard !lengths.isEmpty else { return }
        notes.withLock {
            if $0.lengths.count > Self.mostNoted {
                $0.lengths = [:]
                $0.isIncomplete = true
            }
            $0.lengths.merge(lengths) { $1 }
        }
        wakeup.signal()
    }

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
                notes.withLock { $0.isIncomplete = true }
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
            guard notes.withLock({ $0.lengths.isEmpty && !$0.isIncomplete }) else { continue }
            if isBehind, !stop.isRaised {
                try writer.noteWhole()
                catchingUp.store(false, ordering: .relaxed)
                counted.add(1, ordering: .relaxed)
            }
            var entries = [PollEntry(wakeup.descriptor), PollEntry(stop.descriptor)]
            _ = Host.wait(for: &entries)
            wakeup.clear()
        }
    }

    private func takeNotes(_ writer: IndexWriter) throws -> [ArchiveFile] {
        let taken = notes.withLock { notes in
            let taken = notes
            notes.lengths = [:]
            notes.isIncomplete = false
            return taken
        }
        guard taken.isIncomplete else {
            return taken.lengths.compactMap { ArchiveFile(path: $0, length: $1) }
        }
        catchingUp.store(true, ordering: .relaxed)
        let known = try writer.lengths()
        return try ArchiveFiles.all(in: directory).filter { known[$0.path] != $0.length }
    }
}
