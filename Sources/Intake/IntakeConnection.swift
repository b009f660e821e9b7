// A program connected to the intake socket, as the server sees it.
import CLinux
import Glibc
import Host

/// Receives lines and sends answers in the same order, in bounded buffers.
///
/// Used only by the server's thread.
final class IntakeConnection {
    /// The limit of unanswered lines; beyond it, backpressure makes the program wait for the disk.
    static let lineLimit = 1024
    /// The limit of unread answers in bytes, beyond which no lines are read.
    private static let answerLimit = 128 << 10
    private static let readSize = 16 << 10

    let socket: Descriptor
    private var input = LineBuffer()
    /// Answers to the lines from `firstLine` on; nil while the record is not on disk.
    private var answers: [[UInt8]?] = []
    private var firstLine = 0
    private var outgoing = OutgoingBytes()
    private(set) var lastMoved: BootInstant
    /// The time since which the program has read none of its pending answers.
    var stalledSince: BootInstant? { outgoing.stalledSince }
    /// True after the end of the program's input.
    private var isEnded = false
    /// True once the program accepts no answers; lines that it sent before are still stored.
    private var isDeaf = false
    /// Lines beyond `max_rate` are delayed instead of refused.
    var waitsForRate = false
    /// The line delayed by its stream's `max_rate`; later lines wait behind it.
    private var slowed: (line: LineBuffer.Line, number: Int)?
    private(set) var slowedUntil: BootInstant?

    init(_ number: Int32, now: BootInstant) {
        socket = Descriptor(owning: number)
        lastMoved = now
    }

    // MARK: State

    private var isFull: Bool { answers.count >= Self.lineLimit }

    /// True if lines wait for the disk.
    var isWaiting: Bool { !answers.isEmpty }

    /// True if received lines are not processed yet.
    var isUnread: Bool { input.isUnread || slowed != nil }

    /// True if there is room for another line and its answer.
    var canGoOn: Bool { slowedUntil == nil && !isFull && outgoing.count < Self.answerLimit }

    var isOver: Bool {
        isEnded && answers.isEmpty && outgoing.isEmpty && !input.isUnread
    }

    /// Backpressure: nothing is read while lines wait for room, so data stays in the socket.
    private var wantsInput: Bool { !isEnded && canGoOn && !isUnread }

    /// Returns the poll entry of its socket.
    ///
    /// A socket without events is not polled, since its hang-up would wake this thread repeatedly.
    /// One with a delayed line is polled for hang-up alone, which drops that line.
    func entry(reads: Bool) -> PollEntry {
        let readable = reads && wantsInput ? PollEntry.readable : 0
        let events = readable | (outgoing.isEmpty ? 0 : PollEntry.writable)
        return PollEntry(events == 0 && slowed == nil ? -1 : socket.number, events)
    }

    // MARK: Lines

    /// Reads once from the socket.
    func receive(now: BootInstant) {
        guard wantsInput else { return }
        withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 1) { buffer in
            let flags = Int32(MSG_DONTWAIT)
            let count = recv(socket.number, buffer.baseAddress, buffer.count, flags)
            if count > 0 {
                input.append(buffer[..<count])
                lastMoved = now
            } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
                isEnded = true
                input.end()
            }
        }
    }

    /// Returns the next line and its number; nil if there is none, or no room for an answer.
    func nextLine(limit: Int) -> (line: LineBuffer.Line, number: Int)? {
        guard slowedUntil == nil else { return nil }
        if let slowed {
            self.slowed = nil
            return slowed
        }
        guard canGoOn, let line = input.next(limit: limit) else { return nil }
        answers.append(nil)
        return (line, firstLine + answers.count - 1)
    }

    /// Delays the line that `nextLine` returned last, and all behind it, until `time`.
    func slow(_ line: LineBuffer.Line, _ number: Int, until time: BootInstant) {
        slowed = (line, number)
        slowedUntil = time
    }

    /// Ends the delay of a line: at once, or if its time has come at `now`.
    func resume(now: BootInstant? = nil) {
        guard let until = slowedUntil else { return }
        if now.map({ until <= $0 }) ?? true { slowedUntil = nil }
    }

    /// Handles a hang-up: drops the line delayed by `max_rate` and all after it, all unanswered.
    ///
    /// Without a delayed line, everything sent is still stored.
    func hungUp() {
        guard slowed != nil else { return }
        (slowed, slowedUntil) = (nil, nil)
        // The delayed line was the last one taken from the input.
        answers.removeLast()
        input = LineBuffer()
        isEnded = true
    }

    // MARK: Answers

    /// Sets the answer to a line, and queues all answers whose predecessors are known.
    func answer(_ number: Int, _ answer: [UInt8]) {
        answers[number - firstLine] = answer
        var known = 0
        while known < answers.count, let next = answers[known] {
            if !isDeaf { outgoing.append(line: next) }
            known += 1
        }
        answers.removeFirst(known)
        firstLine += known
    }

    /// Refuses the line delayed by `max_rate`.
    func refuseSlowed(_ refusal: [UInt8]) {
        guard let slowed else { return }
        self.slowed = nil
        answer(slowed.number, refusal)
    }

    /// Sends a message that answers no line, before the connection is closed.
    func say(_ answer: [UInt8]) {
        outgoing.append(line: answer)
        send(now: lastMoved)
    }

    /// Sends as much as the socket accepts.
    func send(now: BootInstant) {
        switch outgoing.send(on: socket, now: now) {
        case .moved: lastMoved = now
        case .waits: break
        case .refused: isDeaf = true
        }
    }
}
