// SQLite's own check of a database, with a limit on its time.
internal import CSQLite
internal import CLinux
internal import Glibc
internal import Host

/// What a check found.
enum CheckResult: Equatable {
    case sound
    case damaged(String)
    /// It took too long, or was told to stop.
    case unfinished
}

/// When a check has to end; read by SQLite's progress handler.
private struct CheckLimit {
    var deadline: BootInstant
    var stop: StopSignal?
    /// The journal cannot be emptied while the check reads.
    var journal: String
    var journalLimit: Int64
}

extension Connection {
    /// Runs `PRAGMA quick_check` (sqlite.org/pragma.html) for at most `limit`.
    borrowing func quickCheck(
        limit: Duration,
        journal: String,
        journalLimit: Int64 = .max,
        until stop: StopSignal? = nil
    ) -> CheckResult {
        var state = CheckLimit(
            deadline: SystemClock().now() + limit,
            stop: stop,
            journal: journal,
            journalLimit: journalLimit
        )
        return withUnsafeMutablePointer(to: &state) { state in
            interrupt(every: 20_000, checkIsOver, state)
            defer { interrupt(every: 0, nil, nil) }
            do {
                let check = try prepare("PRAGMA quick_check(1)")
                guard try check.step() else { return .unfinished }
                let words = check.text(0)
                return words == "ok" ? .sound : .damaged(words)
            } catch {
                let isDamage = (error as? SQLiteError)?.isDamage ?? false
                return isDamage ? .damaged("\(error)") : .unfinished
            }
        }
    }
}

/// A plain function, because C calls it: not 0 ends the statement.
private func checkIsOver(_ context: UnsafeMutableRawPointer?) -> Int32 {
    guard let limit = context?.assumingMemoryBound(to: CheckLimit.self).pointee else { return 1 }
    let isOver =
        SystemClock().now() >= limit.deadline || limit.stop?.isRaised ?? false
        || FileSpace.size(limit.journal) > limit.journalLimit
    return isOver ? 1 : 0
}
