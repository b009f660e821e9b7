// The event loop of a line server.

/// Polls a socket and its clients; used only by the server's thread.
package final class LineLoop<Handler: LineHandler> {
    private let server: LineServer<Handler>
    private let handler: Handler
    private var lastID = 0
    /// The index of the client whose lines are handled first in the next turn.
    private var first = 0
    /// No connection is accepted until then, because the process has no descriptors left.
    private var closedUntil: BootInstant?

    private var limits: LineLimits { server.limits }

    package init(_ server: LineServer<Handler>, _ handler: Handler) {
        (self.server, self.handler) = (server, handler)
    }

    /// Runs one iteration: polls, then handles all events.
    package func turn(_ stop: StopSignal) {
        let entries = pollAll(stop)
        let now = server.clock.now()
        if entries[1].isReady {
            server.runJobs(on: handler)
            server.listener.restore()
        }
        for (client, entry) in zip(handler.clients, entries.dropFirst(3)) {
            client.receive(entry, longestLine: handler.longestLine, now: now)
        }
        handleLines()
        handler.endTurn(now)
        for client in handler.clients { client.flush(now: now) }
        handler.clients.removeAll { $0.isOver(now) }
        if entries[2].isReady, !server.listener.acceptAll({ welcome($0, now) }) {
            closedUntil = now + .seconds(1)
        }
    }

    private func pollAll(_ stop: StopSignal) -> [PollEntry] {
        let now = server.clock.now()
        if let until = closedUntil, until <= now { closedUntil = nil }
        let listener = closedUntil == nil ? server.listener.descriptor : -1
        var entries = [
            PollEntry(stop.descriptor), PollEntry(server.wakeup.descriptor), PollEntry(listener),
        ]
        let reads = handler.hasRoom
        entries += handler.clients.map { $0.entry(reads: reads) }
        _ = stop.wait(for: &entries, timeout: timeout(now))
        return entries
    }

    /// Returns the time until the next deadline; nil if there is none.
    private func timeout(_ now: BootInstant) -> Duration? {
        let clients = handler.clients
        if handler.hasRoom, clients.contains(where: \.hasMore) { return .zero }
        let close = clients.lazy.compactMap(\.deadline).min()
        let delayed = clients.lazy.compactMap(\.delayedUntil).min()
        return [close, delayed, handler.deadline, closedUntil].compactMap { $0 }.min()
            .map { max(.zero, $0 - now) }
    }

    /// Handles received lines; a client with many does not delay the others.
    private func handleLines() {
        let (clients, start) = (handler.clients, first)
        for offset in clients.indices {
            let place = (start + offset) % clients.count
            let client = clients[place]
            for _ in 0..<limits.linesATurn {
                guard handler.hasRoom,
                    let (line, number) = client.nextLine(limit: handler.longestLine)
                else { break }
                handler.handle(line, number, of: client)
            }
            // The first client without room is the first one of the next turn.
            if !handler.hasRoom, first == start, client.isUnread { first = place }
        }
    }

    /// Adds a client; at the limit, of this user or of all, it may take the longest idle one's place.
    private func welcome(_ number: Int32, _ now: BootInstant) {
        lastID += 1
        let client = LineConnection(number, id: lastID, limits, now: now)
        let own = handler.clients.filter { $0.user == client.user }
        let isOwn = own.count >= limits.clientsOfOneUser
        if isOwn || handler.clients.count >= limits.clients {
            let crowd = isOwn ? own : handler.clients
            let idle = crowd.filter(\.isIdle).min { $0.lastMoved < $1.lastMoved }
            guard limits.isStrict, let idle else {
                client.say(handler.refusal(beside: crowd.count))
                return client.flush(now: now)
            }
            handler.clients.removeAll { $0 === idle }
        }
        handler.clients.append(client)
    }

    /// Waits briefly for the answers on their way, and disconnects all clients.
    func finish() {
        let deadline = SystemClock().now() + limits.stop
        while handler.isBusy, case let left = deadline - SystemClock().now(), left > .zero {
            var entries = [PollEntry(server.wakeup.descriptor)]
            _ = wait(for: &entries, timeout: left)
            server.runJobs(on: handler)
        }
        handler.stop()
        for client in handler.clients { client.flush(now: server.clock.now()) }
        handler.clients = []
    }
}
