// A program that is connected to the intake socket.
import CLinux
import Glibc
import Host

/// Lines come in, answers go out in the order of the lines; what waits of either is bounded.
///
/// Belongs to the thread of the server.
final class IntakeConnection {
    /// Lines without an answer at which no more are taken: the program waits for the disk then.
    static let lineLimit = 1024
    /// Answers that are not read, in bytes, at which no more lines are taken.
    private static let answerLimit = 128 << 10
    private static let readSize = 16 << 10

    let socket: Descriptor
    private var input = LineBuffer()
    /// Answers to the lines from `firstLine` on; nil while the disk has not got the record.
    private var answers: [[UInt8]?] = []
    private var firstLine = 0
    private var outgoing = OutgoingBytes()
    private(set) var lastMoved: BootInstant
    /// Since when it has read none of the answers that wait.
    var stalledSince: BootInstant? { outgoing.stalledSince }
    /// Its end of input was read: nothing more comes.
    private var isEnded = false
    /// It takes no answers any more; the lines that it sent before are still kept.
    private var isDeaf = false
    /// Lines that come faster than `max_rate` wait for it instead of being refused.
    var waitsForRate = false
    /// The line that waits for its stream's `max_rate`; those behind it wait with it.
    private var slowed: (line: LineBuffer.Line, number: Int)?
    private(set) var slowedUntil: BootInstant?

    init(_ number: Int32, now: BootInstant) {
        socket = Descriptor(owning: number)
        lastMoved = now
    }

    // MARK: What the server asks

    private var isFull: Bool { answers.count >= Self.lineLimit }

    /// Lines of it wait for the disk.
    var isWaiting: Bool { !answers.isEmpty }

    /// Lines were received that had no room.
    var isUnread: Bool { input.isUnread || slowed != nil }

    /// Has room for another line and its answer.
    var canGoOn: Bool { slowedUntil == nil && !isFull && outgoing.count < Self.answerLimit }

    var isOver: Bool {
        isEnded && answers.isEmpty && outgoing.isEmpty && !input.isUnread
    }

    /// Nothing more is read while lines wait for room: what a program sends stays in its socket.
    private var wantsInput: Bool { !isEnded && canGoOn && !isUnread }

    /// What to poll its socket for.
    ///
    /// A socket without events is left out of the poll, or its hang-up would wake this thread again and again; one
    /// with a slowed line is polled for the hang-up alone, which ends that line.
    func entry(reads: Bool) -> PollEntry {
        let readable = reads && wantsInput ? PollEntry.readable : 0
        let events = readable | (outgoing.isEmpty ? 0 : PollEntry.writable)
        return PollEntry(events == 0 && slowed == nil ? -1 : socket.number, events)
    }

    // MARK: Lines

    /// Reads once what there is.
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

    /// The next line of what was received and its number; nil when there is none, or no room for an answer.
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

    /// Puts back the line that `nextLine` returned last, and all behind it, until then.
    func slow(_ line: LineBuffer.Line, _ number: Int, until time: BootInstant) {
        slowed = (line, number)
        slowedUntil = time
    }

    /// Lets a slowed line be asked for again: now, or once its time has come.
    func resume(now: BootInstant? = nil) {
        guard let until = slowedUntil else { return }
        if now.map({ until <= $0 }) ?? true { slowedUntil = nil }
    }

    /// Its program is gone: the line that waits for `max_rate` and what came after it, none of them answered, are dropped.
    ///
    /// Where no line waits, all that was sent is still kept.
    func hungUp() {
        guard slowed != nil else { return }
        (slowed, slowedUntil) = (nil, nil)
        // The slowed line was the last one that was taken from the input.
        answers.removeLast()
        input = LineBuffer()
        isEnded = true
    }

    // MARK: Answers

    /// Keeps the answer to a line until those before it have theirs.
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

    /// Refuses the line that waits for `max_rate`.
    func refuseSlowed(_ refusal: [UInt8]) {
        guard let slowed else { return }
        self.slowed = nil
        answer(slowed.number, refusal)
    }

    /// A line that answers none, before the connection is closed.
    func say(_ answer: [UInt8]) {
        outgoing.append(line: answer)
        send(now: lastMoved)
    }

    /// Sends what there is, as far as its program takes it.
    func send(now: BootInstant) {
        switch outgoing.send(on: socket, now: now) {
        case .moved: lastMoved = now
        case .waits: break
        case .refused: isDeaf = true
        }
    }
}
