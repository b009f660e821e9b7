// Limits the processor time of one request.
import CLinux
import Glibc
import Host

/// A deadline in the processor time of the current thread.
///
/// The work is linear in the bytes of a batch. The limit bounds the harm to other devices if a bug
/// breaks that, or if the machine is slow. Created and checked on one thread. The gateway halves a
/// batch refused for this (413).
package struct WorkLimit: Sendable {
    private let seconds: Int
    private let end: Int64

    /// The limit for decompressing and checking a batch, which runs in parallel.
    package static var checking: WorkLimit { WorkLimit(seconds: 30) }

    /// The limit for storing a batch, which one thread does at a time.
    package static var storing: WorkLimit { WorkLimit(seconds: 10) }

    /// `seconds`: from now on.
    package init(seconds: Int) {
        self.seconds = seconds
        end = Self.used() + Int64(seconds) * 1_000_000_000
    }

    /// Throws an HTTPError once the time is used up.
    package func check() throws {
        guard Self.used() >= end else { return }
        let reason = "the batch takes more than \(seconds) s of processor time: send less at once"
        throw HTTPError(status: 413, reason: reason)
    }

    /// The processor time of this thread in nanoseconds.
    private static func used() -> Int64 { SystemClock.read(CLOCK_THREAD_CPUTIME_ID) }
}
