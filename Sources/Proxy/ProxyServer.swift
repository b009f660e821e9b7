// The Bluetooth proxy: a server of ESPHome's native API for Home Assistant.
package import Host
package import Records
package import StatusBoard

/// Listens for clients and gives them the advertisements of a tap; one thread runs it.
package final class ProxyServer: Sendable {
    /// The most clients that have the key, and the most that have not shown it yet or are leaving.
    static let clientLimit = 4
    static let visitorLimit = 8

    let facts: ProxyFacts
    let tap: AdvertisementTap
    let board: Publisher<ProxyReport>
    let clock: any HostClock
    let limits: ProxyLimits
    let listener: TCPListener
    let bus: String
    let port: UInt16
    let warn: @Sendable (String) -> Void
    private let health: Wakeup

    /// Opens the socket; `bus`: the address of D-Bus, for mDNS by Avahi.
    ///
    /// Throws a `Failure` with the address, the reason and the remedy.
    package init(
        _ facts: ProxyFacts,
        listen: HostPort,
        bus: String,
        tap: AdvertisementTap,
        board: Publisher<ProxyReport>,
        clock: any HostClock,
        limits: ProxyLimits = ProxyLimits(),
        warn: @escaping @Sendable (String) -> Void = { _ in }
    ) throws {
        (self.facts, self.bus, port, self.warn) = (facts, bus, listen.port, warn)
        (self.tap, self.board, self.clock, self.limits) = (tap, board, clock, limits)
        health = try Wakeup()
        do {
            listener = try TCPListener(listen, waiting: 16)
        } catch {
            throw Failure("proxy: cannot listen on \(error); proxy.listen sets another address")
        }
    }

    /// Wakes the thread once; called by the gateway's health timer.
    package func ask() { health.signal() }

    /// Serves clients until `stop` is raised; blocks only in poll.
    package func run(until stop: StopSignal) {
        let loop = ProxyLoop(self, health)
        while !stop.isRaised { loop.turn(stop) }
        loop.finish()
    }
}

/// The clients of a running proxy; used by its thread only.
final class ProxyLoop {
    private let server: ProxyServer
    private let health: Wakeup
    private var clients: [ProxyClient] = []
    private var report = ProxyReport()
    private let announcement: AvahiAnnouncement
    private var hasWarned = false
    /// When the gathered advertisements are sent; nil while nothing is gathered.
    private var flushesAt: BootInstant?
    /// Until when no client is accepted: the process has no descriptor left.
    private var closedUntil: BootInstant?

    init(_ server: ProxyServer, _ health: Wakeup) {
        (self.server, self.health) = (server, health)
        announcement = AvahiAnnouncement(
            server.facts.identity,
            port: server.port,
            bus: server.bus
        )
        announcement.check()
        publish()
    }

    /// Waits for something to do, and does it.
    func turn(_ stop: StopSignal) {
        let entries = pollAll(stop)
        let now = server.clock.now()
        if entries[1].isReady {
            health.clear()
            checkHealth()
        }
        if entries[2].isReady { server.tap.clear() }
        if entries[4].isReady { announcement.receive() }
        for (client, entry) in zip(clients, entries[5...]) {
            client.receive(entry, server.tap, now: now)
        }
        if entries[3].isReady { accept(now) }
        server.tap.set(open: clients.contains { $0.next != nil && !$0.isOver })
        for client in clients { settle(client, now) }
        makeRoom(now)
        // After the flush: a client that this leaves waiting has bytes for its socket, or is up to
        // date.
        deliver(now)
        clients.removeAll(where: \.isOver)
        publish()
    }

    private func pollAll(_ stop: StopSignal) -> [PollEntry] {
        let now = server.clock.now()
        if let until = closedUntil, until <= now { closedUntil = nil }
        var entries = [
            PollEntry(stop.descriptor), PollEntry(health.descriptor),
            PollEntry(server.tap.descriptor),
            PollEntry(closedUntil == nil ? server.listener.descriptor : -1), announcement.entry,
        ]
        entries += clients.map(\.entry)
        let due = clients.map(\.deadline) + [flushesAt, closedUntil].compactMap { $0 }
        _ = stop.wait(for: &entries, timeout: due.min().map { max(.zero, $0 - now) })
        return entries
    }

    // MARK: Clients

    private func accept(_ now: BootInstant) {
        let isDone = server.listener.acceptAll { number in
            let session = APISession(server.facts) { [unowned self] in
                clients.count(where: \.session.isTrusted) < ProxyServer.clientLimit
            }
            clients.append(ProxyClient(number, session, server.limits, now: now))
            dropVisitor(now)
        }
        if !isDone { closedUntil = now + .seconds(1) }
    }

    /// Drops the oldest visitor of the address that has most, if there are too many.
    ///
    /// One that connects all the time keeps out only itself.
    private func dropVisitor(_ now: BootInstant) {
        let visitors = clients.indices.filter { !clients[$0].session.isTrusted }
        guard visitors.count > ProxyServer.visitorLimit else { return }
        let counts = visitors.reduce(into: [String: Int]()) {
            $0[clients[$1].address, default: 0] += 1
        }
        let maximum = counts.values.max() ?? 0
        guard let drop = visitors.first(where: { counts[clients[$0].address] == maximum }) else {
            return
        }
        fault("\(clients[drop].address): too many unfinished handshakes", now)
        clients.remove(at: drop)
    }

    /// Lets a client that waits for a place have one, or asks the one that was silent for longest
    /// whether it is still there.
    private func makeRoom(_ now: BootInstant) {
        for waiting in clients where waiting.session.stage == .waiting {
            let trusted = clients.filter { $0.session.isTrusted && !$0.isOver }
            if trusted.count < ProxyServer.clientLimit {
                waiting.session.finishHandshake()
            } else if let silent = trusted.min(by: { $0.heard < $1.heard }),
                silent.heard < waiting.heard
            {
                silent.press(now: now)
                silent.flush(now: now)
            } else {
                // All have answered since.
                waiting.session.refuseForRoom()
            }
            settle(waiting, now)
        }
    }

    private func settle(_ client: ProxyClient, _ now: BootInstant) {
        if let why = client.check(now: now) ?? client.session.takeFault() {
            fault("\(client.address): \(why)", now)
        }
        client.flush(now: now)
    }

    private func fault(_ message: String, _ now: BootInstant) {
        report.faults += 1
        report.lastFault = (Failure(message), server.clock.stamp())
    }

    // MARK: Advertisements

    /// Sends what has been gathered: sixteen at once, fewer after `gathering`.
    private func deliver(_ now: BootInstant) {
        let tap = server.tap
        let readers = clients.filter { $0.next != nil }
        guard !readers.isEmpty else { return flushesAt = nil }
        let isDue = flushesAt.map { $0 <= now } ?? false
        let end = tap.end
        for client in readers { send(client, upTo: end, isDue, now) }
        tap.forget(before: readers.compactMap(\.next).min() ?? end)
        // A client that takes no more is woken for by its socket.
        let next = readers.filter(\.wantsAdvertisements).compactMap(\.next)
        if isDue { flushesAt = nil }
        guard let first = next.min() else { return flushesAt = nil }
        let gathers = first < end || (flushesAt != nil && !isDue)
        if gathers, flushesAt == nil { flushesAt = now + server.limits.gathering }
        tap.wake(at: first + (gathers ? UInt64(APISession.batch) : 1))
    }

    /// Sends until the client has all that is due, or its socket takes no more.
    private func send(_ client: ProxyClient, upTo end: UInt64, _ isDue: Bool, _ now: BootInstant) {
        let batch = UInt64(APISession.batch)
        repeat {
            guard var next = client.next else { return }
            let isEnough = next < end && (isDue || end - next >= batch)
            // Also counts what a client that takes nothing has lost so far.
            let limit = client.wantsAdvertisements && isEnough ? APISession.batch : 0
            let (advertisements, lost) = server.tap.read(&next, atMost: limit)
            client.next = next
            report.dropped += lost
            guard !advertisements.isEmpty else { return }
            client.session.send(advertisements)
            client.flush(now: now)
            report.sent += advertisements.count
        } while true
    }

    // MARK: The board, and the end

    private func publish() {
        report.clients = clients.count(where: \.session.isTrusted)
        invariant(report.clients <= ProxyServer.clientLimit, "clients with the key are bounded")
        report.unannounced = announcement.problem
        if server.board.state.value != report { server.board.loaded(report) }
    }

    /// Says goodbye to the clients, which then know that the gateway stops.
    func finish() {
        server.tap.set(open: false)
        let now = server.clock.now()
        for client in clients {
            client.session.sayGoodbye()
            client.flush(now: now)
        }
        clients = []
    }

    private func checkHealth() {
        // Avahi may start after this program: only what still is so is worth a warning.
        if !hasWarned, let problem = announcement.problem {
            hasWarned = true
            server.warn(problem)
        }
        announcement.check()
        for client in clients { client.session.updateScanner() }
    }
}
