// Stores the lines that a detector prints as records of a stream.
import CLinux
import Glibc
import Host
import Intake
import JSON
import Setup

/// A detector's line as a record: dated at the segment's start plus its `offset_s`.
enum DetectionLine {
    private struct Offset: Decodable {
        var offsetS: Double?
    }

    /// Returns the line for the intake socket; throws a `Failure` with the reason.
    static func request(
        _ line: [UInt8],
        stream: String,
        of segment: AudioSegment
    ) throws -> [UInt8] {
        let seconds = try offset(line)
        let length = Double(segment.duration.nanoseconds) / 1e9
        guard seconds >= 0, seconds <= length else {
            throw Failure(
                "offset_s \(seconds) is outside of the segment, which is \(length) s long"
            )
        }
        let offset = Duration.nanoseconds(Int64((seconds * 1e9).rounded()))
        // A clock that is not right yet will be: then the gateway dates by its boot time.
        return try DatedRecord.line(
            stream: stream,
            object: line,
            at: segment.isSynced
                ? .wall((segment.start + offset).wall) : .boot(segment.boot + offset)
        )
    }

    private static func offset(_ line: [UInt8]) throws -> Double {
        // Refuses what the intake would refuse, with its message.
        try DatedRecord.check(line)
        do {
            let found: Offset = try JSONInput.decode(from: line, snakeCase: true)
            return found.offsetS ?? 0
        } catch {
            throw Failure("offset_s is not a number of seconds")
        }
    }
}

/// Sends records to the gateway on a thread of its own, as `waypost put` does.
///
/// Lines that the gateway does not accept yet stay in a pipe, and then in `outgoing`.
final class DetectionPut {
    /// More than this waits: no more output of a detector is read.
    private static let limit = 64 << 10

    private let input: Descriptor
    private let result = StateBox<Result<IntakeClient.Outcome, any Error>?>(nil)
    let finished: Wakeup
    private var outgoing: [UInt8] = []

    /// Starts the thread; `warn` is called on it.
    init(
        _ configuration: Configuration,
        _ stream: UserStream,
        warn: @escaping @Sendable (String) -> Void
    ) throws {
        let pipe = try makePipe()
        input = Descriptor(owning: pipe.writing)
        _ = fcntl(pipe.writing, F_SETFL, O_NONBLOCK)
        finished = try Wakeup()
        let (result, finished, output) = (result, finished, pipe.reading)
        let thread = try OwnThread("put") {
            let owner = Descriptor(owning: output)
            var options = IntakeClient.Options()
            options.takesRequests = true
            let client = IntakeClient(configuration, stream: stream, options: options) {
                warn("\(stream.name): \($0)")
            }
            let outcome = Result { try client.put(from: owner.number) }
            result.update { $0 = outcome }
            finished.signal()
        }
        thread.detach()
    }

    var hasRoom: Bool { outgoing.count < Self.limit }

    var entry: PollEntry {
        PollEntry(outgoing.isEmpty ? -1 : input.number, PollEntry.writable)
    }

    func send(_ line: [UInt8]) {
        outgoing += line
        flush()
    }

    /// Gives the thread as much as its pipe takes.
    func flush() {
        while !outgoing.isEmpty {
            let count = Glibc.write(input.number, outgoing, outgoing.count)
            guard count > 0 else { return }
            outgoing.removeFirst(count)
        }
    }

    /// The thread's result, if it has ended: it must not before the input has.
    var outcome: Result<IntakeClient.Outcome, any Error>? { result.value }

    /// Ends the input; returns the thread's result, or nil if it has none at `deadline`.
    func end(by deadline: BootInstant) -> Result<IntakeClient.Outcome, any Error>? {
        let clock = SystemClock()
        while !outgoing.isEmpty, outcome == nil, clock.now() < deadline {
            var entries = [entry, PollEntry(finished.descriptor)]
            _ = wait(for: &entries, timeout: deadline - clock.now())
            flush()
        }
        guard outgoing.isEmpty else { return nil }
        // The thread reads the end of the pipe once this end is closed.
        if let null = try? Descriptor(opening: "/dev/null", O_WRONLY) {
            dup2(null.number, input.number)
        }
        var entries = [PollEntry(finished.descriptor)]
        _ = wait(for: &entries, timeout: max(.zero, deadline - clock.now()))
        return outcome
    }
}
