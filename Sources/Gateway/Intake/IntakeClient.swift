// The side of the command `waypost put`: objects of an input into the queue, many on their way at a time.
import CLinux
import Glibc
import Host

/// Puts a JSON object a line into a stream, and follows what becomes of each.
package final class IntakeClient {
    /// What came of an input.
    package struct Outcome: Sendable, Equatable {
        package var accepted = 0
        package var refused = 0
    }

    package struct Options: Sendable {
        /// Ends with an error when the gateway has taken nothing for so long; nil: waits for ever.
        package var timeout: Duration?
        /// Lines that come faster than the stream's `max_rate` are slowed down, not refused.
        package var waitsForRate = true
        /// A gateway that takes nothing for longer is reported, once until it takes a line again.
        var noticeAfter = Duration.seconds(10)

        package init() {}
    }

    /// Lines, and bytes of them, without an answer at a time.
    private static let window = 512
    private static let windowBytes = 4 << 20
    /// Bytes of a line of the input, blanks and all.
    private static let lineLimit = 1 << 20
    /// A connection is given up between lines that come seldom, before the gateway gives it up.
    private static let restAfter = Duration.seconds(60)
    private static let retryAfter = Duration.milliseconds(500)
    private static let silence =
        "waypost has taken nothing since; `waypost status` shows how the gateway is"

    /// A line that was read, as it goes to the gateway.
    private struct Line {
        var number: Int
        var text: [UInt8]
    }

    private let stream: UserStream
    private let configuration: Configuration
    private let options: Options
    private let path: String
    private let tell: (String) -> Void
    private let progress: (Outcome) -> Void
    private let clock = SystemClock()
    private var outcome = Outcome()

    private var socket: IntakeSocket?
    private var input = LineBuffer()
    private var isInputOver = false
    private var inputError: SystemError?
    /// Lines read.
    private var lines = 0
    /// Lines that are to be sent, and those that were sent and have no answer yet.
    private var unsent: [Line] = []
    private var waiting: [Line] = []
    private var waitingBytes = 0
    /// The gateway has been there, so it is worth waiting for.
    private var wasConnected = false
    /// Why the gateway takes nothing, as far as that is known.
    private var reason = IntakeClient.silence
    /// Since when the gateway has taken nothing that it was given.
    private var waitingSince: BootInstant?
    private var isNoticed = false

    /// `tell` is given a line for each line that was refused, `progress` what came of it so far, now and then.
    package init(
        _ configuration: Configuration,
        stream: UserStream,
        options: Options = Options(),
        tell: @escaping (String) -> Void,
        progress: @escaping (Outcome) -> Void = { _ in }
    ) {
        self.stream = stream
        self.configuration = configuration
        self.options = options
        path = "\(configuration.runtimeDirectory)/\(Intake.fileName)"
        self.tell = tell
        self.progress = progress
    }

    /// Returns when all lines of a descriptor have their answer; waits for a gateway that goes away meanwhile.
    ///
    /// Throws a Failure when no gateway runs at the start, when it takes nothing for the time-out, or when the input
    /// cannot be read to its end.
    package func put(from descriptor: Int32) throws -> Outcome {
        while socket == nil { try connect() }
        while !(isInputOver && isIdle && !input.isUnread) {
            try turn(descriptor)
            progress(outcome)
        }
        if let inputError { throw Failure("\(inputError), after line \(lines)") }
        return outcome
    }

    private var isGreeting: Bool { socket?.isGreeting ?? false }

    private var isIdle: Bool { waiting.isEmpty && unsent.isEmpty && !isGreeting }

    private var hasRoom: Bool {
        !isGreeting && waiting.count < Self.window && waitingBytes < Self.windowBytes
    }

    private func turn(_ descriptor: Int32) throws {
        let hasWork = hasRoom && (!unsent.isEmpty || input.isUnread)
        var entries = [
            PollEntry(hasRoom && !hasWork && !isInputOver ? descriptor : -1),
            PollEntry(socket?.number ?? -1, socket?.events ?? 0),
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

    /// How long there may be nothing to do.
    private var pause: Duration? {
        if isIdle { return socket == nil ? nil : Self.restAfter }
        return min(.seconds(1), options.timeout ?? .seconds(1))
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
        while hasRoom, !unsent.isEmpty || readLine() {
            if socket == nil { try connect() }
            guard let socket else { return }
            if socket.isGreeting { break }
            let line = unsent.removeFirst()
            waiting.append(line)
            waitingBytes += line.text.count
            socket.outgoing += line.text
        }
        if socket?.send() == false { try receive() }
    }

    /// Takes the next line of the input that is to be sent; false when there is none.
    private func readLine() -> Bool {
        while let line = input.next(limit: Self.lineLimit) {
            lines += 1
            guard let text = wireLine(line) else { continue }
            unsent.append(Line(number: lines, text: text))
            return true
        }
        return false
    }

    /// What goes to the gateway for a line; nil for a blank line, and for one that was refused here.
    private func wireLine(_ line: LineBuffer.Line) -> [UInt8]? {
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

    private func receive() throws {
        guard let socket else { return }
        let isThere = socket.receive()
        while let answer = socket.nextAnswer() {
            if case .refused(let why) = answer,
                socket.isGreeting || IntakeRefusal(why).isOfConnection
            {
                takeBack()
                return try linger(why)
            }
            if socket.isGreeting {
                (socket.isGreeting, reason) = (false, Self.silence)
            } else if !waiting.isEmpty {
                settle(waiting.removeFirst(), answer)
            }
        }
        guard !isThere else { return }
        lose()
        try linger(reason)
    }

    private func settle(_ line: Line, _ answer: IntakeSocket.Answer) {
        waitingBytes -= line.text.count
        moved()
        switch answer {
        case .accepted: outcome.accepted += 1
        case .refused(let why): refuse("line \(line.number)", why)
        }
    }

    /// The gateway ends or lets nobody in, and has kept none of the lines that it did not answer: they are sent again.
    private func takeBack() {
        socket = nil
        unsent = waiting + unsent
        (waiting, waitingBytes) = ([], 0)
    }

    /// The gateway went away: whether it kept what it was sent and did not answer nobody knows, so that is not sent again.
    private func lose() {
        takeBackUnsent()
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

    /// Takes back the lines that were not sent to their end.
    private func takeBackUnsent() {
        var left = socket?.outgoing.count ?? 0
        // Without its end of line alone a line may have been taken.
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

    /// Tries once; returns after a pause where that failed and may succeed later.
    private func connect() throws {
        let absence: IntakeAbsence
        do throws(SystemError) {
            socket = try IntakeSocket(path: path, greets: options.waitsForRate)
            wasConnected = true
            return
        } catch {
            absence = IntakeAbsence(error, stream: stream.name, path: path, configuration)
        }
        if !wasConnected, absence.isFinal || (options.timeout == nil && !absence.endsByItself) {
            throw Failure(absence.message)
        }
        try linger(absence.message)
    }

    /// Pauses before the gateway is tried again, where lines wait for it.
    private func linger(_ reason: String) throws {
        if isIdle, wasConnected { return }
        self.reason = reason
        try checkPatience()
        var none: [PollEntry] = []
        _ = wait(for: &none, timeout: Self.retryAfter)
    }

    /// The gateway took a line; where that was waited for for long, the next wait is no news.
    private func moved() {
        if waitingSince.map({ clock.now() - $0 < options.noticeAfter }) ?? true {
            isNoticed = false
        }
        (waitingSince, reason) = (nil, Self.silence)
    }

    /// Reports once that the gateway takes nothing, and ends it after the time-out.
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
        tell("waiting with line \(next): \(reason)")
    }

    /// What is not known of the lines that were sent, and that all others were not put.
    private func givenUp() -> Failure {
        takeBackUnsent()
        guard let names = Self.names(of: waiting), let last = waiting.last?.number else {
            let next = unsent.first?.number ?? lines + 1
            return Failure("line \(next) and those after it were not put: \(reason)")
        }
        return Failure(
            "\(names): not known whether they were kept; those after line \(last) were not put: \(reason)"
        )
    }
}
