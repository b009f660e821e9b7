// The processor time that one request may use.
import CLinux
import Glibc

/// How long the current thread may still work on a batch, in its own processor time.
///
/// All work grows with the bytes of a batch alone; this bounds what a mistake in that, or a slow
/// machine, can cost the other devices. Made and checked on one thread. The gateway halves a batch
/// that was refused so (413).
struct WorkLimit: Sendable {
    private let seconds: Int
    private let end: Int64

    /// For decompressing and checking a batch, at which others work, too.
    static var checking: WorkLimit { WorkLimit(seconds: 30) }

    /// For storing a batch, at which one thread works at a time.
    static var storing: WorkLimit { WorkLimit(seconds: 10) }

    /// `seconds`: from now on.
    init(seconds: Int) {
        self.seconds = seconds
        end = Self.used() + Int64(seconds) * 1_000_000_000
    }

    /// Throws an HTTPRefusal once the time is used up.
    func check() throws {
        guard Self.used() >= end else { return }
        let reason = "the batch takes more than \(seconds) s of processor time: send less at once"
        throw HTTPRefusal(status: 413, reason: reason)
    }

    /// Nanoseconds that this thread has worked.
    private static func used() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
