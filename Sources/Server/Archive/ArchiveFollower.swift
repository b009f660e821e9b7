// Follows the archive's files, for the page's index and for InfluxDB.
package import Host
package import ServerBase
import Synchronization

/// A background thread on which `IndexFollower` or `InfluxForwarder` reads appended records.
///
/// Its owner reads the files and stores a checkpoint for each; this type keeps the list of files
/// that have grown. Each stored batch adds to the list, which is bounded. After a start, a failure
/// or too many entries, the owner compares all files with its checkpoints. No gateway waits for
/// this thread, and its failures never refuse a batch.
package final class ArchiveFollower: Sendable {
    /// The maximum number of files that are noted; if more have grown, all files are listed.
    private static let maximum = 10_000

    private struct State {
        /// The files that have grown, and their committed lengths.
        var lengths: [String: Int64] = [:]
        /// True if files may be missing there, so that all have to be listed.
        var isIncomplete = true
        /// True until all that was listed is read.
        var isBehind = true
        var isReading = true
        /// Unreadable files and their lengths; more than `maximum` are retried at the next start.
        var unread: [String: Int64] = [:]
        var changes = 0
        /// When the oldest unread part was noted; nil if everything was read.
        var behindSince: ContinuousClock.Instant? = .now

        var isEmpty: Bool { lengths.isEmpty && !isIncomplete }
    }

    private let name: String
    /// The end of the log line about an unreadable file: `is not … yet`.
    private let result: String
    /// The time after which unreadable files are tried again.
    private let pause: Duration
    /// Files that grow within this time are read together.
    private let gathering: Duration
    private let log: ServerLog
    private let state = Mutex(State())
    private let wakeup: Wakeup
    private let ended: StopSignal
    package let stop: StopSignal

    /// `name`: the thread's; `result`: what becomes of a file, such as `forwarded`.
    package init(
        _ name: String,
        result: String,
        pause: Duration,
        gathering: Duration = .zero,
        log: ServerLog
    ) throws {
        (self.name, self.result, self.pause) = (name, result, pause)
        (self.gathering, self.log) = (gathering, log)
        wakeup = try Wakeup()
        stop = try StopSignal()
        ended = try StopSignal()
    }

    // MARK: Any thread

    /// Starts the thread, which runs `body` again and again until `finish`.
    ///
    /// `body` calls `follow`; after its failure, which `failed` gets, all files are listed again.
    package func start(
        _ body: @escaping @Sendable () throws -> Void,
        failed: @escaping @Sendable (any Error) -> Void
    ) throws {
        try startBackgroundThread(name) { [self] in
            while !stop.isRaised {
                do {
                    try body()
                } catch {
                    recordMissed()
                    failed(error)
                }
            }
            ended.raise()
        }
    }

    /// Stops the thread, and waits for it.
    package func finish(within limit: Duration) {
        stop.raise()
        _ = ended.sleep(for: limit)
    }

    /// Adds committed lengths by path; never blocks.
    package func record(_ lengths: [String: Int64]) {
        guard !lengths.isEmpty else { return }
        state.withLock {
            if $0.lengths.count > Self.maximum {
                $0.lengths = [:]
                $0.isIncomplete = true
            }
            $0.lengths.merge(lengths) { $1 }
            $0.behindSince = $0.behindSince ?? .now
        }
        wakeup.signal()
    }

    /// True after the start or a failure: more is missing than the last batches.
    package var isBehind: Bool { state.withLock { $0.isBehind } }

    /// True if everything that is stored was read, except unreadable files.
    package var isDone: Bool { state.withLock { $0.isEmpty && !$0.isReading } }

    /// How long the oldest part that is not read yet has waited; zero if everything was read.
    package var lag: Duration { state.withLock { $0.behindSince?.duration(to: .now) ?? .zero } }

    package var unreadFiles: Int { state.withLock { $0.unread.count } }

    package var hasUnread: Bool { state.withLock { !$0.unread.isEmpty } }

    /// A number that increases with each read, and when `isBehind` ends.
    package var changes: Int { state.withLock { $0.changes } }

    // MARK: The thread

    /// Makes `follow` list all files.
    package func recordMissed() {
        state.withLock {
            ($0.isIncomplete, $0.isBehind) = (true, true)
            $0.behindSince = $0.behindSince ?? .now
        }
    }

    /// Records the result of reading a file; logs an unreadable one once.
    package func record(_ file: ArchiveFile, _ trouble: (any Error)?) {
        let isNew = state.withLock { state in
            let isKnown = state.unread[file.path] != nil
            guard trouble != nil, isKnown || state.unread.count < Self.maximum else {
                state.unread[file.path] = nil
                return false
            }
            state.unread[file.path] = file.length
            return !isKnown
        }
        guard isNew, let trouble else { return }
        log.warn("\(file.path) is not \(result) yet: \(trouble)")
    }

    /// Reads the files that grow, until a stop.
    ///
    /// `begin`: called before each round; `list`: returns the next page of files that may have
    /// grown, after the given file, and an empty one at the end; `read`: reads on, and returns the
    /// files with more to read; `rest`: called when all is read.
    package func follow(
        begin: () throws -> Void = {},
        list: (ArchiveFile?) throws -> [ArchiveFile],
        read: ([ArchiveFile]) throws -> [ArchiveFile],
        rest: () throws -> Void
    ) throws {
        while !stop.isRaised {
            try begin()
            if let files = take() {
                try readAll(files, read)
            } else {
                var last: ArchiveFile?
                repeat {
                    let files = try list(last)
                    last = files.last
                    try readAll(files, read)
                } while last != nil && !stop.isRaised
            }
            guard state.withLock({ $0.isEmpty }), !stop.isRaised else { continue }
            try rest()
            state.withLock {
                if $0.isBehind { $0.changes += 1 }
                ($0.isBehind, $0.isReading) = (false, false)
                if $0.isEmpty { $0.behindSince = nil }
            }
            wait()
        }
    }

    /// Returns the noted files; nil if all have to be listed.
    private func take() -> [ArchiveFile]? {
        let taken = state.withLock { state in
            let taken = state
            (state.lengths, state.isIncomplete, state.isReading) = ([:], false, true)
            if taken.isIncomplete { state.isBehind = true }
            return taken
        }
        guard !taken.isIncomplete else { return nil }
        return taken.lengths.compactMap { ArchiveFile(path: $0, length: $1) }
    }

    private func readAll(
        _ files: [ArchiveFile],
        _ read: ([ArchiveFile]) throws -> [ArchiveFile]
    ) throws {
        var files = files
        while !files.isEmpty, !stop.isRaised {
            let rest = try read(files)
            invariant(rest.count <= files.count, "a round leaves no more files than it got")
            files = rest
            state.withLock { $0.changes += 1 }
        }
    }

    /// Waits until a file has grown, or unreadable ones are due.
    private func wait() {
        var entries = [PollEntry(wakeup.descriptor), PollEntry(stop.descriptor)]
        _ = Host.wait(for: &entries, timeout: hasUnread ? pause : nil)
        wakeup.clear()
        _ = stop.sleep(for: gathering)
        // A length that was noted since is newer.
        state.withLock { $0.lengths.merge($0.unread) { new, _ in new } }
    }
}
