// Detects a stalled request: upload.timeout limits the time without progress, not the total time.
import Host

/// Finds when a request last made progress, from its body, socket and answer.
struct ProgressMonitor {
    /// The progress of a request so far.
    struct Mark: Equatable {
        /// Bytes of the body handed to libcurl.
        var given = 0
        /// Bytes that the kernel has not sent yet: on a slow link minutes after libcurl handed them
        /// over.
        var unsent = 0
        /// Bytes of the answer with its header.
        var answered = 0
    }

    /// Fewer new bytes of an answer are not progress: a byte-by-byte answer would delay all
    /// uploads.
    static let step = 16 << 10
    /// A whole answer may take this many times the limit.
    static let patience = 20

    let limit: Duration
    private var movedAt: BootInstant
    private var last = Mark()
    /// When the answer began, and its length at its last progress; nil before it.
    private var answer: (beganAt: BootInstant, bytes: Int)?

    init(limit: Duration, now: BootInstant) {
        self.limit = limit
        movedAt = now
    }

    /// Resets the timer while connecting, when libcurl's own timeout applies.
    mutating func isConnecting(_ now: BootInstant) { movedAt = now }

    /// Records the request's progress; returns false once it has stalled for too long.
    mutating func goesOn(_ mark: Mark, _ now: BootInstant) -> Bool {
        if mark.given != last.given || mark.unsent != last.unsent {
            movedAt = now
            answer = nil
        } else if let answer {
            if mark.answered - answer.bytes >= Self.step,
                now - answer.beganAt < limit * Self.patience
            {
                movedAt = now
                self.answer?.bytes = mark.answered
            }
        } else if mark.answered > last.answered {
            movedAt = now
            answer = (now, mark.answered)
        }
        last = mark
        return now - movedAt < limit
    }
}
