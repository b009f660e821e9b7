// Forwards the archive's records to an InfluxDB while the receiver serves.
import Host
import SQLite
import Synchronization

/// A background thread that follows the archive's files and sends points.
///
/// No gateway waits for it, nothing queues up in memory, and a batch costs it one notification. A
/// checkpoint advances when InfluxDB has confirmed the points before it. Points sent again, after a
/// kill or a lost answer, are identical, so that is idempotent.
final class InfluxForwarder: Sendable {
    /// The number of files that are listed at once.
    private static let page: Int64 = 1000
    /// The number of unreadable files that are retried; more are retried at the next start.
    private static let mostUnread = 10_000
    /// Files that grow within this time are sent together.
    private static let gathering = Duration.seconds(1)
    /// The waits before retries; the last repeats.
    static let waits: [Duration] = [1, 2, 5, 10, 30, 60].map { .seconds($0) }

    private struct Status {
        var counts = InfluxCounts()
        var isBusy = true
        /// The reason of the last failure; "" after a success.
        var failure = ""
        /// Unreadable files and their lengths.
        var unread: [String: Int64] = [:]

        var isWaiting: Bool { !failure.isEmpty || !unread.isEmpty }
    }

    private let directory: String
    private let sender: InfluxSender
    private let waits: [Duration]
    private let log: ServerLog
    private let grown: AppendedFiles
    private let stop: StopSignal
    private let ended: StopSignal
    private let status = Mutex(Status())

    /// `directory`: the archive's.
    init(
        directory: String,
        sender: InfluxSender,
        waits: [Duration] = InfluxForwarder.waits,
        log: ServerLog
    ) throws {
        (self.directory, self.sender, self.waits, self.log) = (directory, sender, waits, log)
        grown = try AppendedFiles()
        stop = try StopSignal()
        ended = try StopSignal()
    }

    /// Starts the thread, which begins at the checkpoints and runs until `finish`.
    func start() throws {
        try startBackgroundThread("influx") { [self] in
            run()
            ended.raise()
        }
    }

    /// Reports that files have grown; never blocks.
    func note(_ lengths: [String: Int64]) { grown.note(lengths) }

    /// Stops the thread; a request in progress is aborted and sent again after the next start.
    func finish() {
        stop.raise()
        _ = ended.sleep(for: .seconds(2))
    }

    /// The members for /healthz: counts, and whether all stored records are forwarded.
    ///
    /// Contains nothing confidential.
    var health: [String: any Sendable] {
        let status = status.withLock { $0 }
        let isDone = !status.isBusy && grown.isEmpty
        return [
            "points": status.counts.points, "refused": status.counts.refused,
            "left_out": status.counts.leftOut,
            "state": status.isWaiting ? "waiting" : isDone ? "up_to_date" : "sending",
        ]
    }

    // MARK: The thread

    private func run() {
        var retry = Retry(waits)
        while !stop.isRaised {
            do {
                try follow(InfluxBook(directory: directory, url: sender.target.url), &retry)
            } catch {
                fail(error, &retry)
                grown.noteMissed()
                // The checkpoints are lost with it; everything is sent again, as the same points.
                if (error as? SQLiteError)?.isDamage == true { InfluxBook.remove(in: directory) }
            }
        }
    }

    private func follow(_ book: InfluxBook, _ retry: inout Retry) throws {
        while !stop.isRaised {
            let counts = try book.counts()
            status.withLock { ($0.counts, $0.isBusy) = (counts, true) }
            if let files = grown.take() {
                try forward(files, book, &retry)
            } else {
                try catchUp(book, &retry)
            }
            guard grown.isEmpty else { continue }
            let unread = status.withLock { status in
                (status.isBusy, status.failure) = (false, "")
                return status.unread
            }
            grown.wait(until: stop, timeout: unread.isEmpty ? nil : waits.last)
            _ = stop.sleep(for: Self.gathering)
            grown.note(unread, again: true)
        }
    }

    /// Forwards all files, page by page: an archive of years has many.
    private func catchUp(_ book: InfluxBook, _ retry: inout Retry) throws {
        var last = ""
        while !stop.isRaised {
            let files = try ArchiveFiles.page(of: Self.page, after: last, in: directory)
            guard let end = files.last else { return }
            last = end.path
            try forward(files, book, &retry)
        }
    }

    private func forward(_ files: [ArchiveFile], _ book: InfluxBook, _ retry: inout Retry) throws {
        var rest = files[...]
        while !rest.isEmpty, !stop.isRaised {
            var batch = InfluxBatch()
            while let file = rest.first, batch.hasRoom, !stop.isRaised {
                let mark = try book.mark(of: file.path)
                if isRead(file, into: &batch, from: mark) { rest = rest.dropFirst() }
            }
            if !batch.marks.isEmpty { try deliver(batch, book, &retry) }
        }
    }

    /// Reads a file and returns whether it is done for now; an unreadable one is retried later.
    private func isRead(
        _ file: ArchiveFile,
        into batch: inout InfluxBatch,
        from mark: InfluxMark
    ) -> Bool {
        do {
            let isDone = try batch.read(file, in: directory, from: mark)
            status.withLock { $0.unread[file.path] = nil }
            return isDone
        } catch {
            let isNew = status.withLock { status in
                let isKnown = status.unread[file.path] != nil
                guard isKnown || status.unread.count < Self.mostUnread else { return true }
                status.unread[file.path] = file.length
                return !isKnown
            }
            if isNew { log.warn("\(file.path) is not forwarded yet: \(error)") }
            return true
        }
    }

    /// Retries until InfluxDB has confirmed the batch and the checkpoint is stored, or until a
    /// stop.
    private func deliver(_ batch: InfluxBatch, _ book: InfluxBook, _ retry: inout Retry) throws {
        while !stop.isRaised {
            do {
                let verdict = try sender.send(
                    batch.lines,
                    witness: try book.witness(),
                    until: stop
                )
                try book.note(
                    batch.marks,
                    verdict.witness,
                    InfluxCounts(
                        points: verdict.taken,
                        refused: verdict.refused,
                        leftOut: batch.leftOut
                    )
                )
                return succeed(verdict, try book.counts(), &retry)
            } catch let error as InfluxRefusesAll {
                // Start over with the records that arrived since: they may show which points are at
                // fault.
                throw error
            } catch let error as SQLiteError where error.isDamage {
                throw error
            } catch {
                fail(error, &retry)
            }
        }
    }

    private func succeed(
        _ verdict: InfluxVerdict,
        _ counts: InfluxCounts,
        _ retry: inout Retry
    ) {
        retry.succeeded()
        let hadFailed = status.withLock { status in
            defer { (status.counts, status.failure) = (counts, "") }
            return !status.failure.isEmpty
        }
        if hadFailed { log.warn("InfluxDB accepts points again") }
        if verdict.refused > 0 {
            log.warn("InfluxDB has refused points (\(verdict.refused)): \(verdict.words)")
        }
    }

    /// Logs a new failure, and waits before the next try.
    private func fail(_ error: any Error, _ retry: inout Retry) {
        guard !stop.isRaised else { return }
        let failure = "\(error)"
        let isNew = status.withLock { status in
            defer { status.failure = failure }
            return status.failure != failure
        }
        if isNew { log.warn("points are not sent, retrying: \(failure)") }
        _ = stop.sleep(for: retry.next())
    }
}
