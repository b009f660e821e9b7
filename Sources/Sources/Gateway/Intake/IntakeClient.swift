// The side of the command `waypost put`: objects of an input into the queue, many on their way at a time.
internal import Board
internal import CLinux
internal import Glibc
internal import Host

/// Puts a JSON object a line into a stream, and follows what becomes of each.
package final class IntakeClient {
    /// What came of an input.
    package struct Outcome: Sendable, Equatable {
        package var accepted = 0
        package var refused = 0
    }

    /// Lines without an answer at a time.
    private static let window = 512
    /// Bytes of a line of the input, blanks and all.
    private static let lineLimit = 1 << 20
    /// A connection is given up between lines that come seldom, before the gateway gives it up.
    private static let restAfter = Duration.seconds(60)
    /// A gateway that went away is waited for so long.
    private static let patience = Duration.seconds(10)

    private let stream: UserStream
    private let path: String
    private let stateDirectory: String
    private let tell: (String) -> Void
    private let progress: (Outcome) -> Void
    private var outcome = Outcome()

    private var socket: IntakeSocket?
    private var input = LineBuffer()
    private var isInputOver = false
    private var inputError: SystemError?
    /// Lines read, and those of them that have no answer yet.
    private var lines = 0
    private var waiting: [Int] = []

    /// `tell` is given a line for each line that was refused, `progress` what came of it so far, now and then.
    package init(
        _ configuration: Configuration,
        stream: UserStream,
        tell: @escaping (String) -> Void,
        progress: @escaping (Outcome) -> Void = { _ in }
    ) {
        self.stream = stream
        path = "\(configuration.runtimeDirectory)/\(Intake.fileName)"
        stateDirectory = configuration.stateDirectory
        self.tell = tell
        self.progress = progress
    }

    /// Returns when all lines of a descriptor have their answer.
    ///
    /// Throws a Failure when there is no gateway to take them, or the input cannot be read to its end.
    package func put(from descriptor: Int32) throws -> Outcome {
        try connect(patience: .zero)
        while !(isInputOver && waiting.isEmpty && !input.isUnread) {
            try turn(descriptor)
            progress(outcome)
        }
        if let inputError { throw Failure("\(inputError), after line \(lines)") }
        return outcome
    }

    private func turn(_ descriptor: Int32) throws {
        let hasRoom = waiting.count < Self.window
        let wantsInput = hasRoom && !isInputOver && !input.isUnread
        var entries = [
            PollEntry(wantsInput ? descriptor : -1),
            PollEntry(socket?.number ?? -1, socket?.events ?? 0),
        ]
        let isResting = waiting.isEmpty && socket != nil
        let pause: Duration? = hasRoom && input.isUnread ? .zero : isResting ? Self.restAfter : nil
        let ready = wait(for: &entries, timeout: pause)
        if ready == 0, isResting, !input.isUnread { socket = nil }
        if entries[0].isReady { read(descriptor) }
        if entries[1].isReady { receive() }
        try sendLines()
    }

    // MARK: Lines

    private func read(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count > 0 {
                // Editors of another system mark the beginning of a file.
                let isMarked = lines == 0 && buffer.starts(with: [0xEF, 0xBB, 0xBF])
                input.append(buffer[(isMarked ? 3 : 0)..<count])
            } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
                if count < 0 { inputError = .last("read") }
                isInputOver = true
                input.end()
            }
        }
    }

    private func sendLines() throws {
        while waiting.count < Self.window, let line = input.next(limit: Self.lineLimit) {
            lines += 1
            guard let text = try wireLine(line) else { continue }
            if socket == nil { try connect(patience: Self.patience) }
            waiting.append(lines)
            socket?.outgoing += text
        }
        if socket?.send() == false { receive() }
    }

    /// What goes to the gateway for a line; nil for a blank line, and for one that was refused here.
    private func wireLine(_ line: LineBuffer.Line) throws -> [UInt8]? {
        do throws(IntakeRefusal) {
            guard case .whole(let bytes) = line else {
                throw IntakeRefusal("too long: more than \(Self.lineLimit) bytes in a line")
            }
            if bytes.allSatisfy({ $0 == 32 || $0 == 9 || $0 == 13 }) { return nil }
            return IntakeLine.line(
                stream: stream.name,
                members: try IntakeLine.members(of: bytes)
            )
        } catch {
            refuse("line \(lines)", error.message)
            return nil
        }
    }

    private func refuse(_ lines: String, _ why: String) {
        outcome.refused += 1
        tell("\(lines): \(why)")
    }

    // MARK: Answers

    private func receive() {
        guard let socket else { return }
        let isThere = socket.receive()
        while let answer = socket.nextAnswer() {
            guard !waiting.isEmpty else { continue }
            let line = waiting.removeFirst()
            switch answer {
            case .accepted: outcome.accepted += 1
            case .refused(let why): refuse("line \(line)", why)
            }
        }
        if !isThere { lose() }
    }

    /// The gateway went away: whether it kept what it did not answer nobody knows, so nothing is sent twice.
    private func lose() {
        socket = nil
        guard let first = waiting.first, let last = waiting.last else { return }
        outcome.refused += waiting.count - 1
        waiting = []
        refuse(
            first == last ? "line \(first)" : "lines \(first) to \(last)",
            "not known whether they were kept: the gateway ended before it answered; "
                + "`waypost status` counts what it has"
        )
    }

    // MARK: Connecting

    private func connect(patience: Duration) throws {
        let deadline = SystemClock().now() + patience
        while true {
            do throws(SystemError) {
                return socket = try IntakeSocket(path: path)
            } catch {
                guard SystemClock().now() < deadline, error.code != EACCES else {
                    throw Failure(reason(error))
                }
                var none: [PollEntry] = []
                _ = wait(for: &none, timeout: .milliseconds(200))
            }
        }
    }

    /// Three things that look alike from here, each with its own next step.
    private func reason(_ error: SystemError) -> String {
        let isThere =
            if case .running = DaemonPresence(stateDirectory: stateDirectory) { true } else {
                false
            }
        switch error.code {
        case EACCES, EPERM:
            return "\(path): this user has no right to it; "
                + "`sudo usermod -aG waypost $USER`, then log in again"
        case ENOENT where isThere, ECONNREFUSED where isThere:
            return "the running gateway does not know [stream.\(stream.name)] yet; "
                + "`systemctl reload waypost`"
        case ENOENT, ECONNREFUSED:
            return "waypost is not running (nothing answers at \(path)); `systemctl start waypost`"
        default: return "\(error); `waypost status` shows how the gateway is"
        }
    }
}
