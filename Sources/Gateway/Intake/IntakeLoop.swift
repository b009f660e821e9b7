// What the thread of the intake socket does, turn by turn.
import CLinux
import Glibc
import Host
import Records

/// The state of the thread: who is connected, what waits for the disk.
///
/// One batch is on its way at a time; what all programs send meanwhile is the next one. So a slow disk makes
/// larger batches, and many programs cost no more commits than one.
final class IntakeLoop {
    /// Records in a batch: at these, or the sink's bytes, nobody is read until the disk has the batch before.
    private static let batchLimit = 4096
    /// Lines of one program in a turn; then it is the next one's.
    static let linesATurn = 256
    /// A line waits for `max_rate` so long at least, so that one commit has several records that were slowed.
    private static let shortestSlowing = Duration.milliseconds(100)

    /// Whose line a record was.
    private struct Owner {
        var client: IntakeConnection
        var line: Int
    }

    private let server: IntakeServer
    private let clock: any HostClock
    private var streams: IntakeStreams
    private var clients: [IntakeConnection] = []
    /// Who is asked first for lines in the next turn.
    private var first = 0

    private var records: [UserRecord] = []
    private var recordBytes = 0
    private var owners: [Owner] = []
    /// Those whose records are on their way to the disk.
    private var travelling: [Owner]?
    private var batch = 0

    /// Lines are there that had no room in the last turn.
    private var hasMore = false
    /// The process has no descriptors left: nobody is let in until then.
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

    /// Waits until there is something to do, and does it.
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

    /// Until the next program is given up; nil while there is none.
    private func timeout(_ now: BootInstant) -> Duration? {
        if hasMore { return .zero }
        let first = clients.lazy.compactMap(deadline).min()
        let slowed = clients.lazy.compactMap(\.slowedUntil).min()
        return [first, slowed, closedUntil].compactMap { $0 }.min().map { max(.zero, $0 - now) }
    }

    /// When a program that does nothing is taken to be gone; nil while it waits for the disk.
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

    /// Takes what lines there are; returns those who have more than there was room for.
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
            // The first program that found no room is the first one of the next turn.
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
            // Here, for a batch is kept or refused with all that is in it.
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

    /// Answers those whose batch is on the disk, or was refused.
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

    /// Waits a moment for what is on its way, and says that the rest was not kept.
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

    /// Refuses the records that wait, and tells each `waypost put` that what it sent beyond them was not read.
    private func refuseTheRest(_ answer: [UInt8]) {
        for owner in owners { owner.client.answer(owner.line, answer) }
        for client in clients where client.waitsForRate {
            client.refuseSlowed(answer)
            client.say(answer)
        }
    }
}
