// The control socket: JSON lines over a Unix socket, for `status`, `--watch`, `sync` and `reload`.
internal import Board
internal import CLinux
internal import Glibc
internal import Host
internal import Synchronization

/// What clients may ask of the gateway.
struct ControlHandlers: Sendable {
    var status: @Sendable () -> [UInt8]
    /// Starts a sync; the closure is called when it is over.
    var sync: @Sendable (@escaping @Sendable (Bool) -> Void) -> Void
    var reload: @Sendable () -> Void
    var quarantine: @Sendable (QuarantineRequest) -> QuarantineReply
    var survey: @Sendable (SurveyRequest) -> SurveyReply
}

/// Serves the socket on one thread; a client that is slow or hostile is dropped, never waited for.
final class ControlServer: Sendable {
    /// Clients at a time, and bytes of a request.
    private static let clientLimit = 32
    private static let requestLimit = 4096
    /// At most so often is a change pushed to those who watch.
    private static let pushInterval = Duration.milliseconds(250)

    private let listener: UnixListener
    private let handlers: ControlHandlers
    private let wakeup: Wakeup
    /// Somebody watches: without one, changes wake nobody.
    private let isWatched = Atomic(false)
    private let finished = StateBox([(client: Int32, isDone: Bool)]())

    /// A connected client.
    ///
    /// Its descriptor is closed when it goes.
    private final class Client {
        let socket: Descriptor
        var request: [UInt8] = []
        var isWatching = false

        init(_ number: Int32) {
            socket = Descriptor(owning: number)
        }

        /// Sends a line at once, or says that it could not.
        func send(_ line: [UInt8]) -> Bool {
            let line = line + [10]
            let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
            return Glibc.send(socket.number, line, line.count, flags) == line.count
        }
    }

    init(path: String, handlers: ControlHandlers) throws {
        self.handlers = handlers
        wakeup = try Wakeup()
        listener = try UnixListener(path: path, name: "control socket", waiting: 8)
    }

    /// Something changed that watchers want to see.
    func changed() {
        if isWatched.load(ordering: .acquiring) { wakeup.signal() }
    }

    /// Blocks until `stop` is raised.
    func run(until stop: StopSignal) {
        var clients: [Client] = []
        var pushedAt: BootInstant?
        var isOwed = false
        let clock = SystemClock()
        while !stop.isRaised {
            var entries = [
                PollEntry(stop.descriptor), PollEntry(listener.descriptor),
                PollEntry(wakeup.descriptor),
            ]
            isWatched.store(clients.contains(where: \.isWatching), ordering: .releasing)
            entries += clients.map { PollEntry($0.socket.number) }
            let delay = pushedAt.map { max(.zero, $0 + Self.pushInterval - clock.now()) } ?? .zero
            _ = wait(for: &entries, timeout: isOwed ? delay : nil)
            if entries[2].isReady {
                wakeup.clear()
                isOwed = clients.contains(where: \.isWatching)
            }
            let ready = zip(clients, entries.dropFirst(3)).filter { $0.1.isReady }.map(\.0)
            for client in ready where !serve(client) { clients.removeAll { $0 === client } }
            answerFinished(&clients)
            if isOwed,
                delay <= .zero || pushedAt.map({ clock.now() - $0 >= Self.pushInterval }) ?? true
            {
                isOwed = false
                pushedAt = clock.now()
                push(to: &clients)
            }
            if entries[1].isReady { accept(&clients) }
        }
        listener.remove()
    }

    private func accept(_ clients: inout [Client]) {
        guard let number = try? listener.accept() else { return }
        let client = Client(number)
        if clients.count < Self.clientLimit { clients.append(client) }
    }

    private func push(to clients: inout [Client]) {
        guard clients.contains(where: \.isWatching) else { return }
        let line = handlers.status()
        clients.removeAll { $0.isWatching && !$0.send(line) }
    }

    /// Reads what a client sent; false when it is to be dropped.
    private func serve(_ client: Client) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = recv(client.socket.number, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
        client.request += bytes.prefix(count)
        guard client.request.count <= Self.requestLimit else { return false }
        while let end = client.request.firstIndex(of: 10) {
            let line = Array(client.request[..<end])
            client.request.removeSubrange(...end)
            guard obey(line, client) else { return false }
        }
        return true
    }

    private func obey(_ line: [UInt8], _ client: Client) -> Bool {
        if let request = QuarantineRequest(line: line) {
            let sent = client.send(handlers.quarantine(request).json)
            changed()
            return sent
        }
        if let request = SurveyRequest(line: line) {
            let sent = client.send(handlers.survey(request).json)
            changed()
            return sent
        }
        switch ControlCommand(line: line) {
        case .status:
            return client.send(handlers.status())
        case .watch:
            watch(client)
            return client.send(handlers.status())
        case .sync:
            let number = client.socket.number
            watch(client)
            handlers.sync { [weak self] isDone in
                self?.finished.update { $0.append((number, isDone)) }
                self?.wakeup.signal()
            }
            return client.send(handlers.status())
        case .reload:
            handlers.reload()
            return client.send(Array("{\"reload\":true}".utf8))
        case nil:
            return client.send(
                Array(
                    "{\"error\":\"commands are status, watch, sync, reload, quarantine, survey\"}"
                        .utf8
                )
            )
        }
    }

    /// Before the state is read that the client gets first: no change after it is missed.
    private func watch(_ client: Client) {
        client.isWatching = true
        isWatched.store(true, ordering: .releasing)
    }

    /// Tells those whose sync is over, with the state as it is now.
    private func answerFinished(_ clients: inout [Client]) {
        let over = finished.update { finished in
            defer { finished.removeAll() }
            return finished
        }
        for (number, isDone) in over {
            guard let client = clients.first(where: { $0.socket.number == number }) else {
                continue
            }
            client.isWatching = false
            let done = Array("{\"sync_done\":\(isDone)}".utf8)
            if !(client.send(handlers.status()) && client.send(done)) {
                clients.removeAll { $0 === client }
            }
        }
    }
}

/// What a client may send: `{"command":"status"}` and so on, one a line.
package enum ControlCommand: String, Sendable, CaseIterable {
    case status
    case watch
    case sync
    case reload

    /// nil for anything else.
    init?(line: [UInt8]) {
        let text = String(decoding: line, as: UTF8.self).filter { !$0.isWhitespace }
        guard
            let command = Self.allCases.first(where: { text == "{\"command\":\"\($0.rawValue)\"}" })
        else { return nil }
        self = command
    }

    var line: [UInt8] { Array("{\"command\":\"\(rawValue)\"}\n".utf8) }
}
