// Notices a request that gets nowhere: upload.timeout is a limit on standing still, not on being slow.
import Host

/// When a request last got on, judged from what the body, the socket and the answer have come to.
struct ProgressMonitor {
    /// What a request has come to so far.
    struct Mark: Equatable {
        /// Bytes of the body handed to libcurl.
        var given = 0
        /// Bytes that the kernel has not sent yet: over a slow line that takes minutes after libcurl handed them over.
        var unsent = 0
        /// Bytes of the answer with its header.
        var answered = 0
    }

    /// Fewer new bytes of an answer than this are no progress: one that comes byte by byte would delay all uploads.
    static let step = 16 << 10
    /// A whole answer may take so many times the limit.
    static let patience = 20

    let limit: Duration
    private var movedAt: BootInstant
    private var last = Mark()
    /// When the answer began, and how far it was when it last got on; nil before it.
    private var answer: (beganAt: BootInstant, bytes: Int)?

    init(limit: Duration, now: BootInstant) {
        self.limit = limit
        movedAt = now
    }

    /// Before the connection stands libcurl's own limit holds.
    mutating func isConnecting(_ now: BootInstant) { movedAt = now }

    /// Takes note of where the request is; false once it has stood still for too long.
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
