// The event loop of the control socket.
import Glibc
import Host

/// Polls the control socket and its clients, and holds the state of each connection.
///
/// Used only by the socket's thread.
final class ControlLoop {
    private let server: ControlServer
    private let clock = SystemClock()
    private var clients: [ControlConnection] = []
    private var lastID = 0
    /// A change was not pushed to watchers yet; it is pushed no earlier than `pushableAt`.
    private var isOwed = false
    private var pushableAt = BootInstant(nanoseconds: 0)
    private var push: (number: Int, deadline: BootInstant)?
    /// No connection is accepted until then, because the process has no descriptors left.
    private var closedUntil: BootInstant?
    /// The status of this turn, and the encoded reply that holds nothing else.
    private var report: StatusReport?
    private var reportLine: [UInt8]?

    private var limits: ControlServer.Limits { server.limits }

    init(_ server: ControlServer) { self.server = server }

    /// Runs one iteration: polls, then handles all events.
    func turn(_ stop: StopSignal) {
        let entries = pollAll(stop)
        let now = clock.now()
        (report, reportLine) = (nil, nil)
        if entries[1].isReady {
            server.wakeup.clear()
            server.listener.restore()
        }
        for (client, entry) in zip(clients, entries.dropFirst(3))
        where entry.result & ~PollEntry.writable != 0 {
            client.receive(now: now)
        }
        settle(now)
        // One request per client and turn, so that a client with many does not delay the others.
        for client in clients { if let line = client.nextLine() { obey(line, client, now) } }
        server.watched(clients.contains { $0.isWatching })
        answerStatus(now)
        pushChanges(now)
        for client in clients { client.send(now: now) }
        clients.removeAll { $0.isOver || deadline(of: $0).map { $0 <= now } ?? false }
        if entries[2].isReady { accept(now) }
    }

    private func pollAll(_ stop: StopSignal) -> [PollEntry] {
        let now = clock.now()
        if let until = closedUntil, until <= now { closedUntil = nil }
        let listener = closedUntil == nil ? server.listener.descriptor : -1
        var entries = [
            PollEntry(stop.descriptor), PollEntry(server.wakeup.descriptor), PollEntry(listener),
        ]
        entries += clients.map { PollEntry($0.socket.number, $0.events) }
        _ = stop.wait(for: &entries, timeout: timeout(now))
        return entries
    }

    /// Returns the time until the next deadline; nil if there is none.
    private func timeout(_ now: BootInstant) -> Duration? {
        if clients.contains(where: \.hasMore) { return .zero }
        var next = clients.compactMap(deadline)
        if let closedUntil { next.append(closedUntil) }
        if let push { next.append(push.deadline) } else if isOwed { next.append(pushableAt) }
        return next.min().map { max(.zero, $0 - now) }
    }

    /// Returns when a client is answered or disconnected at the latest.
    ///
    /// nil while it waits for work without a timeout.
    private func deadline(of client: ControlConnection) -> BootInstant? {
        if let stalled = client.stalledSince { return stalled + limits.stall }
        switch client.waiting {
        case .work: return nil
        case .status(_, _, let deadline): return deadline
        case .nothing: return client.isWatching ? nil : client.lastMoved + limits.idle
        }
    }

    // MARK: Requests

    private func obey(_ line: [UInt8], _ client: ControlConnection, _ now: BootInstant) {
        guard let request = ControlRequest(line: line) else {
            let commands = ControlRequest.Command.allCases.map(\.rawValue)
            let error = "commands are " + commands.joined(separator: ", ")
            return client.reply(ControlReply(error: error).json)
        }
        switch request.command {
        case .status: awaitStatus(client, nil, now)
        case .watch:
            client.isWatching = true
            awaitStatus(client, nil, now)
        case .sync:
            client.isWatching = true
            isOwed = true
            fallthrough
        default:
            client.waiting = .work
            server.begin(request, of: client.id)
        }
    }

    /// Replies to clients whose work has finished on another thread, if still connected.
    private func settle(_ now: BootInstant) {
        for finished in server.takeFinished() {
            isOwed = true
            guard let client = clients.first(where: { $0.id == finished.client }) else { continue }
            client.waiting = .nothing
            guard finished.request.command == .sync else {
                client.reply(finished.reply.json)
                continue
            }
            client.isWatching = false
            awaitStatus(client, finished.reply, now)
        }
    }

    // MARK: Status

    /// Queues a reply that is sent with the next status published from now on.
    private func awaitStatus(
        _ client: ControlConnection,
        _ reply: ControlReply?,
        _ now: BootInstant
    ) {
        let number = server.status.ask()
        client.waiting = .status(reply, number: number, deadline: now + limits.patience)
    }

    private func answerStatus(_ now: BootInstant) {
        for client in clients {
            guard case .status(let reply, let number, let deadline) = client.waiting,
                server.status.number >= number || deadline <= now
            else { continue }
            client.waiting = .nothing
            client.reply(statusLine(reply))
        }
    }

    private func pushChanges(_ now: BootInstant) {
        if server.takeChanged() { isOwed = true }
        let watchers = clients.filter(\.isWatching)
        guard !watchers.isEmpty else {
            (isOwed, push) = (false, nil)
            return
        }
        if isOwed, push == nil, pushableAt <= now {
            isOwed = false
            push = (server.status.ask(), now + limits.patience)
        }
        guard let push, server.status.number >= push.number || push.deadline <= now else { return }
        self.push = nil
        pushableAt = now + limits.pushInterval
        let line = statusLine(nil)
        // A client that has not read the last status gets the newest one when it has.
        for client in watchers where client.hasRoom { client.reply(line) }
        if watchers.contains(where: { !$0.hasRoom && $0.stalledSince != nil }) { isOwed = true }
    }

    /// Returns a reply with the status of this turn; encoded once for all clients without `reply`.
    private func statusLine(_ reply: ControlReply?) -> [UInt8] {
        if reply == nil, let reportLine { return reportLine }
        let report = report ?? server.status.report()
        var whole = reply ?? ControlReply()
        whole.status = report
        let line = whole.json
        self.report = report
        if reply == nil { reportLine = line }
        return line
    }

    // MARK: Clients

    private func accept(_ now: BootInstant) {
        if !server.listener.acceptAll({ welcome($0, now) }) { closedUntil = now + .seconds(1) }
    }

    /// Adds a client; at the limit, of this user or of all, evicts the longest idle one.
    private func welcome(_ number: Int32, _ now: BootInstant) {
        lastID += 1
        let client = ControlConnection(number, id: lastID, now: now)
        let own = clients.filter { $0.user == client.user }
        let isOwn = own.count >= limits.clientsOfOneUser
        if isOwn || clients.count >= limits.clients {
            let crowd = isOwn ? own : clients
            let idle = crowd.filter(\.isIdle).min { $0.lastMoved < $1.lastMoved }
            guard let idle else {
                let error = "\(crowd.count) programs are being answered; try again later"
                client.reply(ControlReply(error: error).json)
                return client.send(now: now)
            }
            clients.removeAll { $0 === idle }
        }
        clients.append(client)
    }
}
