// The queue without the daemon: for commands that change it while the daemon is dead.
internal import Board
internal import CLinux
internal import Glibc
internal import Host
internal import Queue
internal import Streams

/// Opens the queue of a gateway that does not run, under the gateway's own lock.
enum OfflineQueue {
    /// Calls `body` with the queue, closes it, and brings the last snapshot up to date.
    ///
    /// Throws a Failure when there is no database, or when somebody else has the lock.
    static func open<Value>(
        _ configuration: Configuration,
        version: String,
        _ body: (Queue) throws -> Value
    ) throws -> Value {
        let directory = configuration.stateDirectory
        let path = Gateway.databasePath(directory)
        var owner = stat()
        guard stat(path, &owner) == 0 else {
            let why = String(cString: strerror(errno))
            throw Failure(
                "\(path): \(why); waypost does not run, and this is where its queue would be"
            )
        }
        // As root, be who the daemon is: files made here must be its own.
        if geteuid() == 0, owner.st_uid != 0 {
            guard setegid(owner.st_gid) == 0, seteuid(owner.st_uid) == 0 else {
                throw SystemError.last("seteuid", on: path)
            }
        }
        return try withExtendedLifetime(DirectoryLock(try Gateway.lock(directory))) {
            let queue = try Queue(
                settings: QueueSettings(
                    configuration,
                    bootID: Gateway.currentBootID(),
                    version: version
                )
            )
            defer { queue.close() }
            let value = try body(queue)
            updateSnapshot(configuration, queue)
            return value
        }
    }

    /// The daemon's lock, for as long as it is referred to.
    private final class DirectoryLock {
        private let descriptor: Descriptor

        init(_ descriptor: consuming Descriptor) {
            self.descriptor = descriptor
        }
    }

    /// `status` shows the last snapshot while the daemon is dead: its counts follow.
    private static func updateSnapshot(_ configuration: Configuration, _ queue: Queue) {
        guard var report = Snapshot.read(configuration) else { return }
        let statistics = queue.statistics()
        for figures in statistics where figures.isWorthTelling {
            let name = configuration.wire(of: figures.stream)
            var stream = report.streams[name] ?? StatusReport.StreamFigures(figures)
            stream.pending = figures.pending
            stream.quarantined = figures.quarantined
            stream.uploaded = figures.uploaded
            report.streams[name] = stream
        }
        report.storage.evictedRecords = statistics.reduce(0) { $0 + $1.evicted }
        (report.state, report.reasons) = HealthRules.judge(report)
        Snapshot.write(report.json, to: configuration.stateDirectory)
        Snapshot.write(report.json, to: configuration.runtimeDirectory)
    }
}
