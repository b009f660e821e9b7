// A client connected to a line server.
import CLinux
import Glibc

/// Receives lines and sends their answers in the same order, in bounded buffers.
///
/// Used only by the server's thread.
package final class LineConnection: LineChannel {
    /// A unique id; descriptor numbers are reused.
    package let id: Int
    /// The user id of the client.
    let user: UInt32
    private let limits: LineLimits
    /// Answers to the lines from `firstLine` on; nil while a line has none.
    private var answers: [[UInt8]?] = []
    private var firstLine = 0
    private(set) var lastMoved: BootInstant
    /// True after the end of the client's input.
    private var isEnded = false
    /// True once the client accepts no answers; lines that it sent before are still handled.
    private var isDeaf = false
    /// True if the client is to be disconnected at once.
    private var isGone = false
    /// The client waits for more than answers; it may be idle for as long as it likes.
    package var mayIdle = false
    /// The client asked that its lines be delayed rather than refused.
    package var acceptsDelay = false
    /// The delayed line; later lines wait behind it.
    private var delayed: (line: LineBuffer.Line, number: Int)?
    private(set) var delayedUntil: BootInstant?

    init(_ number: Int32, id: Int, _ limits: LineLimits, now: BootInstant) {
        user = waypost_peer_user(number)
        self.id = id
        self.limits = limits
        lastMoved = now
        super.init(Descriptor(owning: number))
    }

    // MARK: State

    /// True if received lines are not handled yet.
    var isUnread: Bool { input.isUnread || delayed != nil }

    /// True if there is room for another line and its answer.
    private var canGoOn: Bool {
        delayedUntil == nil && answers.count < limits.unanswered
            && outgoing.count < limits.answerBytes
    }

    /// True if `nextLine` may return a line without more input.
    var hasMore: Bool { isUnread && canGoOn }

    /// True if the client waits for nothing.
    var isIdle: Bool { answers.isEmpty && outgoing.isEmpty && !mayIdle }

    /// True if the client is to be disconnected.
    func isOver(_ now: BootInstant) -> Bool {
        let isDone = isEnded && answers.isEmpty && outgoing.isEmpty && !input.isUnread
        return isGone || isDone || deadline.map { $0 <= now } ?? false
    }

    /// Returns when the client is disconnected at the latest; nil while it waits for an answer.
    var deadline: BootInstant? {
        if let stalledSince { return stalledSince + limits.stall }
        return !answers.isEmpty || mayIdle ? nil : lastMoved + limits.idle
    }

    /// Backpressure: nothing is read while lines wait for room, so data stays in the socket.
    private var wantsInput: Bool { !isEnded && (limits.isStrict || (canGoOn && !isUnread)) }

    /// Returns the poll entry of its socket.
    ///
    /// A socket without events is not polled, since its hang-up would wake this thread repeatedly.
    /// One with a delayed line is polled for hang-up alone, which drops that line.
    func entry(reads: Bool) -> PollEntry {
        let events = sendEvents | (reads && wantsInput ? PollEntry.readable : 0)
        return PollEntry(events == 0 && delayed == nil ? -1 : number, events)
    }

    // MARK: Lines

    /// Reads once from the socket if its poll entry says so.
    func receive(_ entry: PollEntry, longestLine: Int, now: BootInstant) {
        if entry.isHungUp { dropDelayed() }
        if let delayedUntil, delayedUntil <= now { resume() }
        guard entry.result & ~PollEntry.writable != 0, wantsInput else { return }
        switch receive(atMost: limits.readBytes) {
        case .moved:
            lastMoved = now
            if limits.isStrict, input.count > longestLine { isGone = true }
        case .waits: break
        case .ended:
            (isEnded, isGone) = (true, limits.isStrict)
            input.end()
        }
    }

    /// Returns the next line and its number; nil if there is none, or no room for an answer.
    func nextLine(limit: Int) -> (line: LineBuffer.Line, number: Int)? {
        guard delayedUntil == nil, !isGone else { return nil }
        if let delayed {
            self.delayed = nil
            return delayed
        }
        guard canGoOn, let line = input.next(limit: limit) else { return nil }
        answers.append(nil)
        return (line, firstLine + answers.count - 1)
    }

    /// Delays the line that `nextLine` returned last, and all behind it, until `time`.
    package func delay(_ line: LineBuffer.Line, _ number: Int, until time: BootInstant) {
        invariant(number == firstLine + answers.count - 1, "a delayed line is the last one taken")
        delayed = (line, number)
        delayedUntil = time
    }

    /// Ends the delay of a line.
    package func resume() { delayedUntil = nil }

    /// Handles a hang-up: drops the delayed line and all after it, all unanswered.
    ///
    /// Without a delayed line, everything sent is still handled.
    private func dropDelayed() {
        guard delayed != nil else { return }
        (delayed, delayedUntil) = (nil, nil)
        // The delayed line was the last one taken from the input.
        answers.removeLast()
        input = LineBuffer()
        isEnded = true
    }

    // MARK: Answers

    /// Sets the answer to a line that has none, and queues all answers whose predecessors are known.
    package func answer(_ number: Int, _ answer: [UInt8]) {
        guard answers.indices.contains(number - firstLine) else { return }
        invariant(answers[number - firstLine] == nil, "a line is answered once")
        answers[number - firstLine] = answer
        var known = 0
        while known < answers.count, let next = answers[known] {
            say(next)
            known += 1
        }
        answers.removeFirst(known)
        firstLine += known
    }

    /// Answers the delayed line, if there is one.
    package func answerDelayed(_ answer: [UInt8]) {
        guard let delayed else { return }
        self.delayed = nil
        self.answer(delayed.number, answer)
    }

    /// Queues a message that answers no line.
    package func say(_ message: [UInt8]) {
        guard !isDeaf else { return }
        outgoing += message
        outgoing.append(10)
        if limits.isStrict, outgoing.count > limits.answerBytes { isGone = true }
    }

    /// Sends as much as the socket accepts.
    func flush(now: BootInstant) {
        switch send(now: now) {
        case .moved: lastMoved = now
        case .waits: break
        case .ended:
            (isDeaf, isGone) = (true, limits.isStrict)
            outgoing = []
        }
    }
}
