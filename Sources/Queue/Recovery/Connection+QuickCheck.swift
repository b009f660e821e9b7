// Runs SQLite's integrity check with a time limit.
import Host
import Records
import SQLite

/// The result of an integrity check.
enum CheckResult: Equatable {
    case sound
    case damaged(String)
    /// It ran out of time, or was stopped.
    case unfinished
}

extension CheckResult {
    /// Parses SQLite's first row; a page that could not be read does not count as damaged.
    init(_ message: String) {
        let code = message.number(after: "error code=").flatMap { Int32($0) }
        if message == "ok" {
            self = .sound
        } else if let code, !SQLiteError(code: code, message: "", statement: "").isDamage {
            self = .unfinished
        } else {
            self = .damaged(message)
        }
    }
}

extension String {
    /// Returns the digits that follow `mark`.
    fileprivate func number(after mark: String) -> Substring? {
        guard let found = firstRange(ofPart: mark) else { return nil }
        return self[found.upperBound...].prefix { $0.isASCII && $0.isNumber }
    }
}

/// The conditions that end a check.
private struct CheckLimit: Sendable {
    var deadline: BootInstant
    var stop: StopSignal?
    /// The WAL cannot be emptied while the check reads.
    var journal: String
    var journalLimit: Int64

    private func isOver(_ now: BootInstant) -> Bool {
        now >= deadline || stop?.isRaised ?? false || FileSpace.size(journal) > journalLimit
    }

    /// Interrupts the check when its limit is reached; returns when it is `done`.
    ///
    /// Sends a heartbeat while `time`, the CPU time of the check's thread, increases.
    func watch(_ check: Interrupter, _ time: ThreadTime, until done: StopSignal) {
        var used = Duration.zero
        while !done.isRaised {
            let now = SystemClock().now()
            if isOver(now) { check.interrupt() }
            if time.used > used { stop?.life.enters("quick_check") }
            used = time.used
            _ = done.sleep(for: min(.milliseconds(100), max(.milliseconds(1), deadline - now)))
        }
    }
}

extension Connection {
    /// Runs `PRAGMA quick_check` (sqlite.org/pragma.html) for at most `limit`.
    ///
    /// `stop` ends it early and receives heartbeats. Another thread interrupts it: SQLite 3.40
    /// calls its progress handler only between VM instructions, and a single one walks all pages.
    borrowing func quickCheck(
        limit: Duration,
        journal: String,
        journalLimit: Int64 = .max,
        until stop: StopSignal? = nil
    ) -> CheckResult {
        let limit = CheckLimit(
            deadline: SystemClock().now() + limit,
            stop: stop,
            journal: journal,
            journalLimit: journalLimit
        )
        let (interrupter, time) = (interrupter, ThreadTime())
        guard let done = try? StopSignal(),
            let watch = try? OwnThread(
                "check-limit",
                { limit.watch(interrupter, time, until: done) }
            )
        else { return .unfinished }
        let result = quickCheck()
        done.raise()
        watch.join()
        return result
    }

    /// Runs `PRAGMA quick_check` to its end, up to three times.
    ///
    /// For a bad pointer map page SQLite only reports that it cannot be read (btree.c,
    /// checkPtrmap). A temporary disk error disappears on retry, damage does not.
    borrowing func quickCheck() -> CheckResult {
        var result = quickCheckOnce()
        for _ in 0..<2 {
            guard case .damaged(let message) = result,
                message.firstRange(ofPart: "Failed to read ptrmap") != nil
            else { break }
            result = quickCheckOnce()
        }
        return result
    }

    private borrowing func quickCheckOnce() -> CheckResult {
        do throws(SQLiteError) {
            let check = try prepare("PRAGMA quick_check(1)")
            guard try check.step() else { return .unfinished }
            return CheckResult(check.text(0))
        } catch {
            return error.isDamage ? .damaged("\(error)") : .unfinished
        }
    }
}
