// Updates the index from the files while the receiver serves.
import Host
import SQLite
import ServerArchive
package import ServerBase
import Synchronization

/// A background thread that indexes the record files as they grow.
package final class IndexFollower: Sendable {
    /// The wait after a failure.
    private static let pause = Duration.seconds(30)

    private let directory: String
    private let log: ServerLog
    private let files: ArchiveFollower
    /// True if the index was damaged and rebuilt, and has not followed a batch since.
    private let isRemade = Atomic(false)

    package init(directory: String, log: ServerLog) throws {
        (self.directory, self.log) = (directory, log)
        files = try ArchiveFollower(
            "index",
            result: "in the page's index",
            pause: Self.pause,
            log: log
        )
    }

    /// Starts the thread, which first catches up and runs until `finish`.
    package func start() throws { try files.start(follow, failed: fail) }

    /// Reports that files have grown; never blocks.
    package func record(_ lengths: [String: Int64]) { files.record(lengths) }

    /// True if the index is catching up after the start or a failure: more is missing than the last
    /// batches.
    var isBehind: Bool { files.isBehind }

    /// The number of changes of the index since the start.
    package var changes: Int { files.changes }

    /// How long the oldest record that is not in the index has waited, and the files that cannot be
    /// read.
    package var lag: (time: Duration, unreadFiles: Int) { (files.lag, files.unreadFiles) }

    /// Stops the thread after its current transaction.
    package func finish() { files.finish(within: .zero) }

    @Sendable private func fail(_ error: any Error) {
        log.write("the page's index is delayed: \(error)")
        // Rebuilt only once in a row: a faulty disk would damage it again and again.
        if (error as? SQLiteError)?.isDamage == true, !isRemade.load(ordering: .relaxed) {
            isRemade.store(true, ordering: .relaxed)
            removeDatabase(FleetIndex.path(in: directory))
        } else {
            _ = files.stop.sleep(for: Self.pause)
        }
    }

    @Sendable private func follow() throws {
        let writer = IndexWriter(try FleetIndex.open(in: directory), directory: directory)
        try files.follow(
            begin: {
                // A rebuild that was killed has left the index incomplete.
                if try !isBehind && !FleetIndex.isWhole(writer.database)
                    && !RebuildLock.isHeld(in: directory)
                {
                    files.recordMissed()
                }
            },
            list: { last in
                guard last == nil else { return [] }
                let known = try writer.lengths()
                return try ArchiveFiles.all(in: directory).filter { known[$0.path] != $0.length }
            },
            read: { try writer.follow($0, look: files.record) },
            rest: {
                if isBehind {
                    try FleetIndex.recordWhole(writer.database)
                } else {
                    isRemade.store(false, ordering: .relaxed)
                }
            }
        )
    }
}
