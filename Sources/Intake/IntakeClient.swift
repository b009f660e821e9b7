// The client of the intake socket, used by `waypost put`.
import CLinux
import Glibc
import Host
package import Setup

/// Sends JSON objects, one per line, to a stream, and handles the answer to each.
///
/// Pipelines many lines. Retries lines that the gateway certainly did not store.
package final class IntakeClient {
    /// The counts of accepted and refused lines.
    package struct Outcome: Sendable, Equatable {
        package var accepted = 0
        package var refused = 0
    }

    package struct Options: Sendable {
        /// Fails if the gateway has accepted nothing for this long; nil: no timeout.
        package var timeout: Duration?
        /// Lines beyond the stream's `max_rate` are delayed, not refused.
        package var waitsForRate = true
        /// The input's lines are requests of `DatedRecord`, not objects.
        package var takesRequests = false
        /// A gateway that accepts nothing for longer is reported, once per outage.
        var noticeAfter = Duration.seconds(10)

        package init() {}
    }

    /// Limits of unanswered lines: their count and their bytes.
    private static let window = 512
    private static let windowBytes = 4 << 20
    /// The size limit of an input line in bytes, blanks included.
    private static let lineLimit = 1 << 20
    /// An idle connection is closed after this, before the gateway closes it.
    private static let restAfter = Duration.seconds(60)
    private static let retryAfter = Duration.milliseconds(500)
    private static let silence =
        "waypost has accepted nothing since; `waypost status` shows the state of the gateway"

    /// A line to send, and its number in the input.
    private struct Line {
        var number: Int
        var text: [UInt8]
    }

    private let stream: UserStream
    private let configuration: Configuration
    private let options: Options
    private let path: String
    private let warn: (String) -> Void
    private let progress: (Outcome) -> Void
    private let clock = SystemClock()
    private var outcome = Outcome()

    private var socket: LineChannel? {
        didSet { isGreeting = options.waitsForRate && socket != nil }
    }
    /// True until `{"wait": true}` is answered; no line is sent before.
    private var isGreeting = false
    private var input = LineBuffer()
    private var isInputOver = false
    private var inputError: SystemError?
    /// The number of lines read.
    private var lines = 0
    /// Lines to send, and lines sent without an answer yet.
    private var unsent: [Line] = []
    private var waiting: [Line] = []
    private var waitingBytes = 0
    /// True after the first connection; then a lost gateway is waited for.
    private var wasConnected = false
    /// The best known reason why the gateway accepts nothing.
    private var reason = IntakeClient.silence
    /// The time since which the gateway has accepted nothing.
    private var waitingSince: BootInstant?
    private var isNoticed = false

    /// `warn` gets a message per refused line, `progress` regularly the counts so far.
    package init(
        _ configuration: Configuration,
        stream: UserStream,
        options: Options = Options(),
        warn: @escaping (String) -> Void,
        progress: @escaping (Outcome) -> Void = { _ in }
    ) {
        self.stream = stream
        self.configuration = configuration
        self.options = options
        path = "\(configuration.runtimeDirectory)/\(IntakeService.fileName)"
        self.warn = warn
        self.progress = progress
    }

    /// Sends all lines read from a descriptor and returns when each has an answer.
    ///
    /// Reconnects to a gateway that restarts. Throws a Failure if no gateway runs at the start, on
    /// timeout, or if the input cannot be read to its end.
    package func put(from descriptor: Int32) throws -> Outcome {
        while socket == nil { try connect() }
        while !(isInputOver && isIdle && !input.isUnread) {
            try turn(descriptor)
            progress(outcome)
        }
        if let inputError { throw Failure("\(inputError), after line \(lines)") }
        return outcome
    }

    private var isIdle: Bool { waiting.isEmpty && unsent.isEmpty && !isGreeting }

    private var hasRoom: Bool {
        !isGreeting && waiting.count < Self.window && waitingBytes < Self.windowBytes
    }

    private func turn(_ descriptor: Int32) throws {
        let hasWork = hasRoom && (!unsent.isEmpty || input.isUnread)
        var entries = [
            PollEntry(hasRoom && !hasWork && !isInputOver ? descriptor : -1),
            PollEntry(socket?.number ?? -1, PollEntry.readable | (socket?.sendEvents ?? 0)),
        ]
        let isResting = isIdle && !hasWork && socket != nil
        let ready = wait(for: &entries, timeout: hasWork ? .zero : pause)
        if ready == 0, isResting { socket = nil }
        if entries[0].isReady { read(descriptor) }
        if entries[1].isReady { try receive() }
        try sendLines()
        if isIdle {
            (waitingSince, isNoticed) = (nil, false)
        } else if socket != nil {
            try checkPatience()
        }
    }

    /// The poll timeout.
    private var pause: Duration? {
        if isIdle { return socket == nil ? nil : Self.restAfter }
        return min(.seconds(1), options.timeout ?? .seconds(1))
    }

    // MARK: Lines

    private func read(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count > 0 {
                // Skip a byte order mark at the beginning of a file.
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
        while hasRoom, !unsent.isEmpty || readLine() {
            if socket == nil { try connect() }
            guard let socket else { return }
            if isGreeting { break }
            let line = unsent.removeFirst()
            waiting.append(line)
            waitingBytes += line.text.count
            socket.outgoing += line.text
        }
        if socket?.send(now: clock.now()) == .ended { try receive() }
    }

    /// Queues the next line of the input that is to be sent; false if there is none.
    private func readLine() -> Bool {
        while let line = input.next(limit: Self.lineLimit) {
            lines += 1
            guard let text = wireLine(line) else { continue }
            unsent.append(Line(number: lines, text: text))
            return true
        }
        return false
    }

    /// Returns the request for a line; nil for a blank line, and for one that was refused here.
    private func wireLine(_ line: LineBuffer.Line) -> [UInt8]? {
        do throws(IntakeError) {
            guard case .whole(let bytes) = line else {
                throw IntakeError("too long: more than \(Self.lineLimit) bytes in a line")
            }
            if bytes.allSatisfy({ $0 == 32 || $0 == 9 || $0 == 13 }) { return nil }
            if options.takesRequests { return bytes + [10] }
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
        warn("\(lines): \(why)")
    }

    // MARK: Answers

    private func receive() throws {
        guard let socket else { return }
        var received = socket.receive()
        while received == .moved { received = socket.receive() }
        while let line = socket.input.next(limit: 64 << 10) {
            // 1 answers a line, 0 answers `{"wait": true}`.
            let why = IntakeLine.refusal(in: line, unlessAccepted: isGreeting ? 0 : 1)
            if let why, isGreeting || IntakeError(why).isOfConnection {
                requeue()
                return try linger(why)
            }
            if isGreeting {
                (isGreeting, reason) = (false, Self.silence)
            } else if !waiting.isEmpty {
                settle(waiting.removeFirst(), why)
            }
        }
        guard received == .ended else { return }
        lose()
        try linger(reason)
    }

    private func settle(_ line: Line, _ refusal: String?) {
        waitingBytes -= line.text.count
        let isRight = waitingBytes >= 0 && (waitingBytes == 0 || !waiting.isEmpty)
        invariant(isRight, "the bytes that wait are those of the lines")
        moved()
        if let refusal { refuse("line \(line.number)", refusal) } else { outcome.accepted += 1 }
    }

    /// Queues all unanswered lines again: a stopping or full gateway has stored none of them.
    private func requeue() {
        socket = nil
        unsent = waiting + unsent
        (waiting, waitingBytes) = ([], 0)
    }

    /// Reports the lines that the gateway left unanswered when it vanished.
    ///
    /// They may have been stored, so they are not sent again.
    private func lose() {
        requeueUnsent()
        let unknown = waiting
        socket = nil
        (waiting, waitingBytes) = ([], 0)
        guard let names = Self.names(of: unknown) else { return }
        outcome.refused += unknown.count - 1
        refuse(
            names,
            "not known whether they were kept: the gateway ended before it answered; "
                + "`waypost status` counts what it has"
        )
    }

    /// Queues lines again that were not sent completely.
    private func requeueUnsent() {
        var left = socket?.outgoing.count ?? 0
        // A line that lacks only its line feed may have been accepted.
        while left > 1, let line = waiting.popLast() {
            unsent.insert(line, at: 0)
            left -= line.text.count
        }
    }

    private static func names(of lines: [Line]) -> String? {
        guard let first = lines.first?.number, let last = lines.last?.number else { return nil }
        return first == last ? "line \(first)" : "lines \(first) to \(last)"
    }

    // MARK: Waiting

    /// Tries to connect once; pauses after a failure that a retry may cure.
    private func connect() throws {
        let absence: IntakeAbsence
        do throws(SystemError) {
            let channel = LineChannel(try UnixSocket.connect(to: path))
            if options.waitsForRate { channel.outgoing = IntakeLine.waitForRate + [10] }
            (socket, wasConnected) = (channel, true)
            return
        } catch {
            absence = IntakeAbsence(error, stream: stream.name, path: path, configuration)
        }
        if !wasConnected, absence.isFinal || (options.timeout == nil && !absence.endsByItself) {
            throw Failure(absence.message)
        }
        try linger(absence.message)
    }

    /// Pauses before a retry, if lines are pending.
    private func linger(_ reason: String) throws {
        if isIdle, wasConnected { return }
        self.reason = reason
        try checkPatience()
        var none: [PollEntry] = []
        _ = wait(for: &none, timeout: Self.retryAfter)
    }

    /// Notes progress; after a long wait the next one is not reported again.
    private func moved() {
        if waitingSince.map({ clock.now() - $0 < options.noticeAfter }) ?? true {
            isNoticed = false
        }
        (waitingSince, reason) = (nil, Self.silence)
    }

    /// Reports once that the gateway accepts nothing, and throws on timeout.
    private func checkPatience() throws {
        let now = clock.now()
        let since = waitingSince ?? now
        waitingSince = since
        if let timeout = options.timeout, now - since >= timeout { throw givenUp() }
        let next = waiting.first?.number ?? unsent.first?.number ?? lines + 1
        guard !isNoticed, now - since >= (wasConnected ? options.noticeAfter : .zero) else {
            return
        }
        isNoticed = true
        warn("waiting with line \(next): \(reason)")
    }

    /// Returns the timeout error, which names the lines of unknown state and those not sent.
    private func givenUp() -> Failure {
        requeueUnsent()
        guard let names = Self.names(of: waiting), let last = waiting.last?.number else {
            let next = unsent.first?.number ?? lines + 1
            return Failure("line \(next) and those after it were not put: \(reason)")
        }
        return Failure(
            "\(names): not known whether they were kept; those after line \(last) were not put: \(reason)"
        )
    }
}
