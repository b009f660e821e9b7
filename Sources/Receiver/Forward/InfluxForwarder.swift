// Keeps an InfluxDB behind the archive while the receiver serves.
import Host
import SQLite
import Synchronization

/// A thread of its own, which reads the archive's files: no gateway waits for it, nothing waits in memory, and a batch
/// costs it a note.
///
/// A mark moves when InfluxDB has what lies before it. What is sent again, after a kill or an answer that was lost, is
/// the same points.
final class InfluxForwarder: Sendable {
    /// Files that are looked at together.
    private static let page: Int64 = 1000
    /// Files that could not be read and are tried again; more of them are at the next start.
    private static let mostUnread = 10_000
    /// What comes within it goes together.
    private static let gathering = Duration.seconds(1)
    /// Before what failed is tried again; the last for ever.
    static let waits: [Duration] = [1, 2, 5, 10, 30, 60].map { .seconds($0) }

    private struct Status {
        var counts = InfluxCounts()
        var isBusy = true
        /// Why the last try failed; "" where it did not.
        var failure = ""
        /// Files that could not be read, and their lengths.
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

    /// Begins with what was not forwarded yet; ends with `finish`.
    func start() throws {
        try startBackgroundThread("influx") { [self] in
            run()
            ended.raise()
        }
    }

    /// Files have grown; waits for nobody.
    func note(_ lengths: [String: Int64]) { grown.note(lengths) }

    /// A request under way is given up, and is sent again after the next start.
    func finish() {
        stop.raise()
        _ = ended.sleep(for: .seconds(2))
    }

    /// For /healthz: counts, and whether all that is stored is forwarded.
    ///
    /// Says nothing that a stranger may not know.
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
                // The marks are lost with it; all is sent again, as the same points.
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

    /// All files, a page at a time: an archive of years has many.
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

    /// Whether nothing is left to be read in it now; a file that cannot be read holds up no other, and is tried again.
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
            if isNew { log.warn("\(file.path) is not forwarded now: \(error)") }
            return true
        }
    }

    /// Tries for ever; returns when InfluxDB has it and that is noted, or at a stop.
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
                // With what comes meanwhile it may turn out whose fault it is: all is gathered anew.
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
        if hadFailed { log.warn("InfluxDB takes points again") }
        if verdict.refused > 0 {
            log.warn("InfluxDB has refused points (\(verdict.refused)): \(verdict.words)")
        }
    }

    /// Tells what is new, and waits before the next try.
    private func fail(_ error: any Error, _ retry: inout Retry) {
        guard !stop.isRaised else { return }
        let failure = "\(error)"
        let isNew = status.withLock { status in
            defer { status.failure = failure }
            return status.failure != failure
        }
        if isNew { log.warn("points wait for InfluxDB: \(failure)") }
        _ = stop.sleep(for: retry.next())
    }
}
