// SQLite's own check of a database, with a limit on its time.
import Host
import Records
import SQLite

/// What a check found.
enum CheckResult: Equatable {
    case sound
    case damaged(String)
    /// It took too long, or was told to stop.
    case unfinished
}

extension CheckResult {
    /// From the first row that SQLite gives; a page that the disk did not give says nothing of what is on it.
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
    /// The digits that follow `mark`.
    fileprivate func number(after mark: String) -> Substring? {
        guard let found = firstRange(ofPart: mark) else { return nil }
        return self[found.upperBound...].prefix { $0.isASCII && $0.isNumber }
    }
}

/// When a check has to end.
private struct CheckLimit: Sendable {
    var deadline: BootInstant
    var stop: StopSignal?
    /// The journal cannot be emptied while the check reads.
    var journal: String
    var journalLimit: Int64

    private func isOver(_ now: BootInstant) -> Bool {
        now >= deadline || stop?.isRaised ?? false || FileSpace.size(journal) > journalLimit
    }

    /// Interrupts the check when it is over, until it is `done`; `time`: of its thread, which uses some for each page.
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
    /// `stop` ends it, and hears that it goes on. Interrupted from another thread: SQLite 3.40 asks its progress
    /// handler only between statements of its own machine, and walking all pages is a single one of them.
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

    /// Runs it to its end.
    ///
    /// Of a page that leads to others SQLite says only that it cannot be read (btree.c, checkPtrmap): a disk that
    /// did not give it just now does so the next time, damage stays.
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
