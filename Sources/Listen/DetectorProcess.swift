// One call of a detector.
import CLinux
import Glibc
import Host

/// A detector that works on one segment: a shell command in its own process group.
final class DetectorProcess {
    /// The time from SIGTERM to SIGKILL.
    private static let grace = Duration.seconds(2)

    let segment: AudioSegment
    /// Its standard output; -1 if that is this program's.
    private let output: Descriptor
    private let child: ChildProcess
    var lines = LineBuffer()
    /// It has closed its standard output.
    private var isAtEnd = false
    /// When to send the next signal.
    private(set) var due: BootInstant
    private var isTerminated = false
    /// It was ended because it had worked for too long.
    private(set) var isLate = false

    /// Starts `/bin/sh -c COMMAND`; `environment`: `NAME=value`.
    ///
    /// Throws a `SystemError` if it cannot be started.
    init(
        _ command: String,
        _ segment: AudioSegment,
        environment: [String],
        isRead: Bool,
        limit: Duration
    ) throws {
        let pipe = isRead ? try makePipe() : (reading: -1, writing: -1)
        output = Descriptor(owning: pipe.reading)
        let other = Descriptor(owning: pipe.writing)
        let nothing = try Descriptor(opening: "/dev/null", O_RDONLY)
        child = try ChildProcess(
            "/bin/sh",
            ["-c", command],
            environment: environment,
            files: [
                STDIN_FILENO: nothing.number,
                STDOUT_FILENO: isRead ? other.number : STDOUT_FILENO,
            ]
        )
        if isRead { _ = fcntl(output.number, F_SETFL, O_NONBLOCK) }
        self.segment = segment
        due = SystemClock().now() + limit
    }

    /// The entries to poll: the end, and the output unless `isWanted` is false or all was read.
    func entries(isWanted: Bool) -> [PollEntry] {
        [child.end, PollEntry(isWanted && !isAtEnd ? output.number : -1)]
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

    /// Ends it: first by SIGTERM, at the next call by SIGKILL.
    func end(at now: BootInstant, isLate: Bool) {
        self.isLate = self.isLate || isLate
        child.kill(isTerminated ? SIGKILL : SIGTERM)
        (isTerminated, due) = (true, now + Self.grace)
    }

    /// Returns how it ended, after `entries` said so; nil: with status 0.
    ///
    /// Programs that it left running are killed: one segment is worked on at a time.
    func reap() -> String? {
        // Before waitpid(2), which frees the number of the group.
        child.kill(SIGKILL)
        let status = child.wait()
        // A pipe holds 64 kB; nobody writes to it any more.
        read()
        lines.end()
        if isLate { return "it took too long and was ended" }
        return status.isSuccess ? nil : "\(status)"
    }
}
