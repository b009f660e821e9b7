// Handles the requests of the control socket's clients.
import Host

/// Executes requests, and pushes the status to watchers; used only by the socket's thread.
final class ControlHandler: LineHandler {
    /// Executes any request but `status`; must not block; calls back once, on any thread.
    typealias Perform =
        @Sendable (ControlRequest, _ done: @escaping @Sendable (ControlReply) -> Void) -> Void

    /// The status is sent after this at the latest, as last published.
    private static let patience = Duration.milliseconds(500)
    /// The shortest interval between two pushes to watchers.
    private static let pushInterval = Duration.milliseconds(250)

    /// A request of client `client`, which may have gone.
    private struct Asked: Sendable {
        var client: Int
        var line: Int
        var command: ControlRequest.Command
    }

    /// A reply that waits for status publication `number` or a later one, or for the deadline.
    private struct Waiting {
        var asked: Asked
        /// Is sent with the newest status then; nil: a reply with the status alone.
        var reply: ControlReply?
        var number: Int
        var deadline: BootInstant
    }

    var clients: [LineConnection] = []
    let longestLine = 4096
    let hasRoom = true
    let isBusy = false

    private let lines: LineServer<ControlHandler>
    private let status: StatusPublication
    private let isWatched: StateBox<Bool>
    private let perform: Perform
    private let clock = SystemClock()
    private var waiting: [Waiting] = []
    /// A change was not pushed to watchers yet; it is pushed no earlier than `pushableAt`.
    var isOwed = false
    private var pushableAt = BootInstant(nanoseconds: 0)
    private var push: (number: Int, deadline: BootInstant)?
    /// The status of this turn, and the encoded reply that holds nothing else.
    private var report: StatusReport?
    private var reportLine: [UInt8]?

    /// Sets `isWatched` after each turn with watchers.
    init(
        _ lines: LineServer<ControlHandler>,
        _ status: StatusPublication,
        _ isWatched: StateBox<Bool>,
        _ perform: @escaping Perform
    ) {
        (self.lines, self.status) = (lines, status)
        (self.isWatched, self.perform) = (isWatched, perform)
    }

    var deadline: BootInstant? {
        let push = push?.deadline ?? (isOwed ? pushableAt : nil)
        return (waiting.map(\.deadline) + [push].compactMap { $0 }).min()
    }

    func refusal(beside count: Int) -> [UInt8] {
        ControlReply(error: "\(count) programs are being answered; try again later").json
    }

    func stop() {}

    // MARK: Requests

    func handle(_ line: LineBuffer.Line, _ number: Int, of client: LineConnection) {
        guard case .whole(let bytes) = line, let request = ControlRequest(line: bytes) else {
            let commands = ControlRequest.Command.allCases.map(\.rawValue)
            let error = "commands are " + commands.joined(separator: ", ")
            return client.answer(number, ControlReply(error: error).json)
        }
        let asked = Asked(client: client.id, line: number, command: request.command)
        if [.watch, .sync].contains(request.command) { client.mayIdle = true }
        switch request.command {
        case .status, .watch: awaitStatus(asked, nil)
        default:
            isOwed = isOwed || request.command == .sync
            perform(request) { [lines] reply in lines.post { $0.finish(asked, reply) } }
        }
    }

    /// Replies to a client whose request was executed, if it is still connected.
    private func finish(_ asked: Asked, _ reply: ControlReply) {
        isOwed = true
        guard let client = clients.first(where: { $0.id == asked.client }) else { return }
        guard [.sync, .measure].contains(asked.command) else {
            return client.answer(asked.line, reply.json)
        }
        client.mayIdle = false
        awaitStatus(asked, reply)
    }

    // MARK: Status

    /// Queues a reply that is sent with the next status published from now on.
    private func awaitStatus(_ asked: Asked, _ reply: ControlReply?) {
        let deadline = clock.now() + Self.patience
        waiting.append(
            Waiting(asked: asked, reply: reply, number: status.ask(), deadline: deadline)
        )
    }

    func endTurn(_ now: BootInstant) {
        (report, reportLine) = (nil, nil)
        isWatched.update { [isAny = clients.contains(where: \.mayIdle)] in $0 = isAny }
        waiting.removeAll { one in !clients.contains { $0.id == one.asked.client } }
        answerStatus(now)
        pushChanges(now)
    }

    private func answerStatus(_ now: BootInstant) {
        let published = status.number
        let due = waiting.filter { $0.number <= published || $0.deadline <= now }
        waiting.removeAll { $0.number <= published || $0.deadline <= now }
        for one in due {
            let client = clients.first { $0.id == one.asked.client }
            client?.answer(one.asked.line, statusLine(one.reply))
        }
    }

    private func pushChanges(_ now: BootInstant) {
        let watchers = clients.filter(\.mayIdle)
        guard !watchers.isEmpty else {
            (isOwed, push) = (false, nil)
            return
        }
        if isOwed, push == nil, pushableAt <= now {
            isOwed = false
            push = (status.ask(), now + Self.patience)
        }
        guard let push, status.number >= push.number || push.deadline <= now else { return }
        self.push = nil
        pushableAt = now + Self.pushInterval
        let line = statusLine(nil)
        // A client that has not read the last status gets the newest one when it has.
        for client in watchers where client.outgoing.isEmpty { client.say(line) }
        if watchers.contains(where: { $0.stalledSince != nil }) { isOwed = true }
    }

    /// Returns a reply with the status of this turn; encoded once for all clients without `reply`.
    private func statusLine(_ reply: ControlReply?) -> [UInt8] {
        if reply == nil, let reportLine { return reportLine }
        let report = report ?? status.report()
        var whole = reply ?? ControlReply()
        whole.status = report
        let line = whole.json
        self.report = report
        if reply == nil { reportLine = line }
        return line
    }
}
