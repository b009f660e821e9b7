// Forwards the archive's records to an InfluxDB while the receiver serves.
import Host
import SQLite
import ServerArchive
package import ServerBase
import Synchronization

/// A background thread that follows the archive's files and sends points.
///
/// Nothing queues up in memory. A checkpoint advances when InfluxDB has confirmed the points before
/// it. Points that are sent again, after a kill or a lost answer, are identical, so InfluxDB stores
/// them once.
package final class InfluxForwarder: Sendable {
    /// The number of files that are listed at once: an archive of years has many.
    private static let page: Int64 = 1000
    /// The waits before retries; the last repeats.
    package static let waits: [Duration] = [1, 2, 5, 10, 30, 60].map { .seconds($0) }

    private struct Status {
        var counts = InfluxCounts()
        /// The reason of the last failure; "" after a success.
        var failure = ""
        var retry: Retry
    }

    private let directory: String
    private let sender: InfluxSender
    private let log: ServerLog
    private let files: ArchiveFollower
    private let status: Mutex<Status>

    private var stop: StopSignal { files.stop }

    /// `directory`: the archive's.
    package init(
        directory: String,
        sender: InfluxSender,
        waits: [Duration] = InfluxForwarder.waits,
        log: ServerLog
    ) throws {
        (self.directory, self.sender, self.log) = (directory, sender, log)
        status = Mutex(Status(retry: Retry(waits)))
        files = try ArchiveFollower(
            "influx",
            result: "forwarded",
            pause: waits.last ?? .seconds(60),
            gathering: .seconds(1),
            log: log
        )
    }

    /// Starts the thread, which begins at the checkpoints and runs until `finish`.
    package func start() throws {
        try files.start(follow) { [self] error in
            fail(error)
            // The checkpoints are lost with it; everything is sent again, as the same points.
            if (error as? SQLiteError)?.isDamage == true {
                removeDatabase(InfluxBook.path(in: directory))
            }
        }
    }

    /// Reports that files have grown; never blocks.
    package func record(_ lengths: [String: Int64]) { files.record(lengths) }

    /// Stops the thread; a request in progress is aborted and sent again after the next start.
    package func finish() { files.finish(within: .seconds(2)) }

    /// The members for /healthz: counts, and whether all stored records are forwarded.
    ///
    /// Contains nothing confidential.
    package var health: [String: any Sendable] {
        let status = status.withLock { $0 }
        let isWaiting = !status.failure.isEmpty || files.hasUnread
        return [
            "points": status.counts.points, "refused": status.counts.refused,
            "left_out": status.counts.leftOut,
            "state": isWaiting ? "waiting" : files.isDone ? "up_to_date" : "sending",
        ]
    }

    // MARK: The thread

    @Sendable private func follow() throws {
        let book = try InfluxBook(directory: directory, url: sender.target.url)
        let counts = try book.counts()
        status.withLock { $0.counts = counts }
        try files.follow(
            list: { try ArchiveFiles.page(of: Self.page, after: $0?.path ?? "", in: directory) },
            read: { try forward($0, book) },
            rest: { status.withLock { $0.failure = "" } }
        )
    }

    /// Forwards one batch of points; returns the files with more to read.
    private func forward(_ files: [ArchiveFile], _ book: InfluxBook) throws -> [ArchiveFile] {
        var rest = files[...]
        var batch = InfluxBatch()
        while let file = rest.first, batch.hasRoom, !stop.isRaised {
            let mark = try book.mark(of: file.path)
            var isDone = true
            do {
                isDone = try batch.read(file, in: directory, from: mark)
                self.files.record(file, nil)
            } catch {
                self.files.record(file, error)
            }
            if isDone { rest = rest.dropFirst() }
        }
        if !batch.marks.isEmpty { try deliver(batch, book) }
        return Array(rest)
    }

    /// Retries until InfluxDB has confirmed the batch and the checkpoint is stored, or until a
    /// stop.
    private func deliver(_ batch: InfluxBatch, _ book: InfluxBook) throws {
        while !stop.isRaised {
            do {
                let verdict = try sender.send(
                    batch.lines,
                    witness: try book.witness(),
                    until: stop
                )
                try book.record(
                    batch.marks,
                    verdict.witness,
                    InfluxCounts(
                        points: verdict.taken,
                        refused: verdict.refused,
                        leftOut: batch.leftOut
                    )
                )
                return succeed(verdict, try book.counts())
            } catch let error as InfluxError {
                // Start over with the records that arrived since: they may show which points are at
                // fault.
                throw error
            } catch let error as SQLiteError where error.isDamage {
                throw error
            } catch {
                fail(error)
            }
        }
    }

    private func succeed(_ verdict: InfluxVerdict, _ counts: InfluxCounts) {
        let hadFailed = status.withLock { status in
            defer { (status.counts, status.failure) = (counts, "") }
            status.retry.succeeded()
            return !status.failure.isEmpty
        }
        if hadFailed { log.warn("InfluxDB accepts points again") }
        if verdict.refused > 0 {
            log.warn("InfluxDB has refused points (\(verdict.refused)): \(verdict.words)")
        }
    }

    /// Logs a new failure, and waits before the next try.
    private func fail(_ error: any Error) {
        guard !stop.isRaised else { return }
        let failure = "\(error)"
        let (isNew, wait) = status.withLock { status in
            defer { status.failure = failure }
            return (status.failure != failure, status.retry.next())
        }
        if isNew { log.warn("points are not sent, retrying: \(failure)") }
        _ = stop.sleep(for: wait)
    }
}
