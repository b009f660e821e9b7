// A program that is connected to the intake socket.
internal import CLinux
internal import Glibc
internal import Host

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

    init(_ number: Int32, now: BootInstant) {
        socket = Descriptor(owning: number)
        lastMoved = now
    }

    // MARK: What the server asks

    private var isFull: Bool { answers.count >= Self.lineLimit }

    /// Lines of it wait for the disk.
    var isWaiting: Bool { !answers.isEmpty }

    /// Lines were received that had no room.
    var isUnread: Bool { input.isUnread }

    /// Has room for another line and its answer.
    var canGoOn: Bool { !isFull && outgoing.count < Self.answerLimit }

    var isOver: Bool {
        isEnded && answers.isEmpty && outgoing.isEmpty && !input.isUnread
    }

    /// Nothing more is read while lines wait for room: what a program sends stays in its socket.
    private var wantsInput: Bool { !isEnded && canGoOn && !isUnread }

    /// What to poll its socket for.
    ///
    /// A socket without events is left out of the poll, or its hang-up would wake this thread again and again.
    func events(reads: Bool) -> Int16 {
        let readable = reads && wantsInput ? PollEntry.readable : 0
        return readable | (outgoing.isEmpty ? 0 : PollEntry.writable)
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
        guard canGoOn, let line = input.next(limit: limit) else { return nil }
        answers.append(nil)
        return (line, firstLine + answers.count - 1)
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
