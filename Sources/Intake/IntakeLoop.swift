// The event loop of the intake socket.
import CLinux
import Glibc
import Host
import Records

/// Polls the socket and its programs, and collects their records in batches.
///
/// One batch is written at a time; lines that arrive until it is committed form the next one. So a
/// slow disk makes larger batches, and many programs cost no more commits than one. Used only by
/// the socket's thread.
final class IntakeLoop {
    /// The most records in a batch.
    ///
    /// At this or the sink's byte limit, nothing is read until the batch before is committed.
    private static let batchLimit = 4096
    /// The most lines read from one program per turn.
    static let linesATurn = 256
    /// The shortest delay for `max_rate`, so that one commit holds several delayed records.
    private static let shortestSlowing = Duration.milliseconds(100)

    /// The line that a record came from.
    private struct Owner {
        var client: IntakeConnection
        var line: Int
    }

    private let server: IntakeServer
    private let clock: any HostClock
    private var streams: IntakeStreams
    private var clients: [IntakeConnection] = []
    /// The index of the program whose lines are read first in the next turn.
    private var first = 0

    private var records: [UserRecord] = []
    private var recordBytes = 0
    private var owners: [Owner] = []
    /// The lines of the batch that is being written.
    private var travelling: [Owner]?
    private var batch = 0

    /// True if lines had no room in the last turn.
    private var hasMore = false
    /// No connection is accepted until then, because the process has no descriptors left.
    private var closedUntil: BootInstant?
    private var figures = IntakeFigures()

    init(_ server: IntakeServer) {
        self.server = server
        clock = server.clock
        streams = IntakeStreams([], now: server.clock.now())
    }

    private var hasRoom: Bool {
        records.count < Self.batchLimit && recordBytes < server.sink.putBytes
    }

    // MARK: A turn

    /// Runs one iteration: polls, then handles all events.
    func turn(_ stop: StopSignal) {
        redeclare()
        let entries = pollAll(stop)
        let now = clock.now()
        if entries[1].isReady {
            server.wakeup.clear()
            server.listener.restore()
            redeclare()
            settle()
        }
        for (client, entry) in zip(clients, entries.dropFirst(3)) where entry.isHungUp {
            client.hungUp()
        }
        for client in clients { client.resume(now: now) }
        for (client, entry) in zip(clients, entries.dropFirst(3))
        where entry.result & ~PollEntry.writable != 0 {
            client.receive(now: now)
        }
        let held = takeLines()
        submit()
        for client in clients { client.send(now: now) }
        hasMore = hasRoom && held.contains { $0.canGoOn }
        clients.removeAll { client in
            client.isOver || deadline(of: client).map { $0 <= now } ?? false
        }
        if entries[2].isReady { accept(now) }
        report()
    }

    private func pollAll(_ stop: StopSignal) -> [PollEntry] {
        let now = clock.now()
        if let until = closedUntil, until <= now { closedUntil = nil }
        let listener = closedUntil == nil ? server.listener.descriptor : -1
        var entries = [
            PollEntry(stop.descriptor), PollEntry(server.wakeup.descriptor), PollEntry(listener),
        ]
        let reads = hasRoom
        entries += clients.map { $0.entry(reads: reads) }
        _ = stop.wait(for: &entries, timeout: timeout(now))
        return entries
    }

    /// Returns the time until the next deadline; nil if there is none.
    private func timeout(_ now: BootInstant) -> Duration? {
        if hasMore { return .zero }
        let first = clients.lazy.compactMap(deadline).min()
        let slowed = clients.lazy.compactMap(\.slowedUntil).min()
        return [first, slowed, closedUntil].compactMap { $0 }.min().map { max(.zero, $0 - now) }
    }

    /// Returns when an idle program is disconnected; nil while it waits for the disk.
    private func deadline(of client: IntakeConnection) -> BootInstant? {
        if let stalled = client.stalledSince { return stalled + server.limits.stall }
        return client.isWaiting ? nil : client.lastMoved + server.limits.idle
    }

    private func redeclare() {
        guard let declared = server.takeDeclared() else { return }
        streams.declare(declared, now: clock.now())
        for client in clients { client.resume() }
    }

    private func report() {
        figures.clients = clients.count
        if server.figures.value != figures { server.figures.update { [figures] in $0 = figures } }
    }

    // MARK: Programs

    private func accept(_ now: BootInstant) {
        if !server.listener.acceptAll({ welcome($0, now) }) { closedUntil = now + .seconds(1) }
    }

    private func welcome(_ number: Int32, _ now: BootInstant) {
        let client = IntakeConnection(number, now: now)
        guard clients.count < server.limits.clients else {
            return client.say(IntakeRefusal.full(clients.count).answer)
        }
        clients.append(client)
    }

    /// Processes received lines; returns the programs with lines left over.
    private func takeLines() -> [IntakeConnection] {
        var held: [IntakeConnection] = []
        let start = first
        for offset in clients.indices {
            let place = (start + offset) % clients.count
            let client = clients[place]
            for _ in 0..<Self.linesATurn {
                guard hasRoom, let (line, number) = client.nextLine(limit: streams.longestLine)
                else { break }
                take(line, Owner(client: client, line: number))
            }
            guard client.isUnread else { continue }
            held.append(client)
            // The first program without room is the first one of the next turn.
            if !hasRoom, first == start { first = place }
        }
        return held
    }

    private func take(_ line: LineBuffer.Line, _ owner: Owner) {
        do throws(IntakeRefusal) {
            guard case .whole(let bytes) = line else { throw streams.tooLong }
            if bytes.count < 64, bytes.filter({ $0 > 32 }) == IntakeLine.waitForRate {
                owner.client.waitsForRate = true
                return owner.client.answer(owner.line, IntakeLine.waits)
            }
            let record = try streams.record(of: bytes, clock)
            // Checked per record here, because a batch is stored or refused as a whole.
            if let why = server.sink.refusal(of: record.stream) {
                throw IntakeRefusal("not kept: \(why)")
            }
            recordBytes += record.members.count
            records.append(record)
            owners.append(owner)
        } catch {
            if let delay = error.retryAfter, owner.client.waitsForRate {
                let until = clock.now() + max(delay, Self.shortestSlowing)
                return owner.client.slow(line, owner.line, until: until)
            }
            figures.refused += 1
            owner.client.answer(owner.line, error.answer)
        }
    }

    // MARK: The disk

    private func submit() {
        guard travelling == nil, !records.isEmpty else { return }
        batch += 1
        travelling = owners
        let records = records
        (self.records, owners, recordBytes) = ([], [], 0)
        server.put(records, batch: batch)
    }

    /// Answers the lines of the batch that was committed or refused.
    private func settle() {
        for outcome in server.takeFinished() where outcome.batch == batch {
            guard let owners = travelling else { continue }
            travelling = nil
            let refusal = outcome.reason.map { reason in
                IntakeRefusal("not kept: \(reason.plainWords(atMost: 300)); send it again later")
            }
            let answer = refusal?.answer ?? IntakeLine.accepted
            if refusal == nil {
                figures.accepted += owners.count
            } else {
                figures.refused += owners.count
            }
            for owner in owners { owner.client.answer(owner.line, answer) }
        }
    }

    /// Waits briefly for the batch being written, and refuses the rest.
    func finish() {
        let deadline = SystemClock().now() + server.limits.stop
        while travelling != nil, case let left = deadline - SystemClock().now(), left > .zero {
            var entries = [PollEntry(server.wakeup.descriptor)]
            _ = wait(for: &entries, timeout: left)
            server.wakeup.clear()
            settle()
        }
        if travelling == nil { refuseTheRest(IntakeRefusal.stopping.answer) }
        for client in clients { client.send(now: clock.now()) }
        clients = []
        report()
    }

    /// Refuses pending records, and tells each `waypost put` that later lines were not read.
    private func refuseTheRest(_ answer: [UInt8]) {
        for owner in owners { owner.client.answer(owner.line, answer) }
        for client in clients where client.waitsForRate {
            client.refuseSlowed(answer)
            client.say(answer)
        }
    }
}
