// One call of a detector.
import CLinux
import Glibc
import Host

/// A detector that works on one segment: a shell command in its own process group.
final class DetectorProcess {
    /// The time from SIGTERM to SIGKILL.
    private static let grace = Duration.seconds(2)

    let segment: SoundSegment
    /// The end of the program is readable here (pidfd_open(2)).
    private let ended: Descriptor
    /// Its standard output; -1 if that is this program's.
    private let output: Descriptor
    private let child: pid_t
    private(set) var lines = LineBuffer()
    /// It has closed its standard output.
    private var isAtEnd = false
    /// When to send the next signal.
    private(set) var due: BootInstant
    private var isTerminated = false
    private var isReaped = false
    /// It was ended because it had worked for too long.
    private(set) var isLate = false

    /// Starts `/bin/sh -c COMMAND`; `environment`: `NAME=value`.
    ///
    /// Throws a `SystemError` if it cannot be started.
    init(
        _ command: String,
        _ segment: SoundSegment,
        environment: [String],
        isRead: Bool,
        limit: Duration
    ) throws {
        var ends: [Int32] = [-1, -1]
        if isRead, waypost_pipe(&ends) != 0 { throw SystemError.last("pipe") }
        output = Descriptor(owning: ends[0])
        let other = Descriptor(owning: ends[1])
        let nothing = try Descriptor(opening: "/dev/null", O_RDONLY)
        child = try spawn(
            "/bin/sh",
            ["/bin/sh", "-c", command],
            environment: environment,
            files: [
                STDIN_FILENO: nothing.number,
                STDOUT_FILENO: isRead ? other.number : STDOUT_FILENO,
            ]
        )
        let number = waypost_pidfd(child)
        guard number >= 0 else {
            let error = SystemError.last("pidfd_open")
            kill(-child, SIGKILL)
            waitpid(child, nil, 0)
            throw error
        }
        ended = Descriptor(owning: number)
        if isRead { _ = fcntl(output.number, F_SETFL, O_NONBLOCK) }
        self.segment = segment
        due = SystemClock().now() + limit
    }

    deinit {
        guard !isReaped else { return }
        kill(-child, SIGKILL)
        waitpid(child, nil, 0)
    }

    /// The entries to poll: the end, and the output unless `isWanted` is false or all was read.
    func entries(isWanted: Bool) -> [PollEntry] {
        [PollEntry(ended.number), PollEntry(isWanted && !isAtEnd ? output.number : -1)]
    }

    /// Reads what the output holds; at most 64 kB.
    func read() {
        guard output.number >= 0 else { return }
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer in
            let count = Glibc.read(output.number, buffer.baseAddress, buffer.count)
            if count > 0 { lines.append(buffer[..<count]) }
            isAtEnd = count == 0
        }
    }

    /// Returns the next line; nil if more must be read.
    func nextLine(limit: Int) -> LineBuffer.Line? { lines.next(limit: limit) }

    /// Ends it: first by SIGTERM, at the next call by SIGKILL.
    func end(at now: BootInstant, isLate: Bool) {
        self.isLate = self.isLate || isLate
        kill(-child, isTerminated ? SIGKILL : SIGTERM)
        (isTerminated, due) = (true, now + Self.grace)
    }

    /// Returns how it ended, after `entries` said so; nil: with status 0.
    ///
    /// Programs that it left running are killed: one segment is worked on at a time.
    func reap() -> String? {
        // Before waitpid(2), which frees the number of the group.
        kill(-child, SIGKILL)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        isReaped = true
        // A pipe holds 64 kB; nobody writes to it any more.
        read()
        lines.end()
        if isLate { return "it took too long and was ended" }
        let signal = status & 0x7F
        if signal != 0 { return "signal \(signal) (\(String(cString: strsignal(signal))))" }
        return status == 0 ? nil : "exit status \(status >> 8 & 0xFF)"
    }
}
