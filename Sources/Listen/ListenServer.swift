// The listen socket: gives the recording's samples to other programs, as they are recorded.
package import Host
package import Records
package import StatusBoard

/// Owns the listening socket; one thread serves it.
///
/// Programs send nothing. Each gets the samples from its connection on, as fast as it reads them.
package final class ListenServer: Sendable {
    /// A program that has read nothing for this long gives its place to a new one.
    static let stall = Duration.seconds(10)

    let listener: UnixListener
    let tap: AudioTap
    let facts: ListenFacts
    let board: Publisher<ListenReport>
    let clock: any HostClock
    let health: Wakeup

    /// Opens the socket; throws a `Failure` with its path.
    package init(
        path: String,
        tap: AudioTap,
        facts: ListenFacts,
        board: Publisher<ListenReport>,
        clock: any HostClock
    ) throws {
        (self.tap, self.facts, self.board, self.clock) = (tap, facts, board, clock)
        health = try Wakeup()
        listener = try UnixListener(path: path, name: "listen socket", waiting: 16)
    }

    /// Serves programs until `stop` is raised; blocks only in poll.
    package func run(until stop: StopSignal) {
        let loop = ListenLoop(self)
        while !stop.isRaised { loop.turn(stop) }
        loop.finish()
    }
}

/// The programs that listen; used only by the server's thread.
private final class ListenLoop {
    private let server: ListenServer
    private var readers: [ListenReader] = []
    private var report = ListenReport()
    /// Until when no program is accepted: the process has no descriptor left.
    private var closedUntil: BootInstant?

    init(_ server: ListenServer) {
        self.server = server
        server.board.loaded(report)
    }

    /// Waits for something to do, and does it.
    func turn(_ stop: StopSignal) {
        let entries = pollAll(stop)
        let now = server.clock.now()
        if entries[1].isReady {
            server.health.clear()
            server.listener.restore()
        }
        if entries[2].isReady { server.tap.clear() }
        for (reader, entry) in zip(readers, entries[4...]) where entry.isHungUp {
            reader.isOver = true
        }
        readers.removeAll(where: \.isOver)
        if entries[3].isReady { accept(now) }
        serve(now)
        if server.board.state.value != report { server.board.loaded(report) }
    }

    private func pollAll(_ stop: StopSignal) -> [PollEntry] {
        let now = server.clock.now()
        if let until = closedUntil, until <= now { closedUntil = nil }
        var entries = [
            PollEntry(stop.descriptor), PollEntry(server.health.descriptor),
            PollEntry(server.tap.descriptor),
            PollEntry(closedUntil == nil ? server.listener.descriptor : -1),
        ]
        entries += readers.map(\.entry)
        _ = stop.wait(for: &entries, timeout: closedUntil.map { max(.zero, $0 - now) })
        return entries
    }

    private func accept(_ now: BootInstant) {
        server.tap.set(open: true)
        let isDone = server.listener.acceptAll { number in
            let reader = ListenReader(Descriptor(owning: number), next: server.tap.end)
            if readers.count >= ListenReport.readerLimit, !makeRoom(now) {
                return reader.refuse(now)
            }
            readers.append(reader)
        }
        if !isDone { closedUntil = now + .seconds(1) }
    }

    /// Disconnects the program that has read nothing for longest; false if all of them read.
    private func makeRoom(_ now: BootInstant) -> Bool {
        let idle = readers.indices.compactMap { index in
            readers[index].stalledSince.map { (index: index, since: $0) }
        }.min { $0.since < $1.since }
        guard let idle, now - idle.since >= ListenServer.stall else { return false }
        readers.remove(at: idle.index)
        return true
    }

    private func serve(_ now: BootInstant) {
        for reader in readers {
            let before = reader.figures
            reader.serve(server.tap, server.facts, now)
            report.sent += reader.figures.sent - before.sent
            report.lost += reader.figures.lost - before.lost
        }
        readers.removeAll(where: \.isOver)
        report.readers = readers.count
        server.tap.set(open: !readers.isEmpty)
        if let oldest = readers.map(\.next).min() { server.tap.forget(before: oldest) }
    }

    func finish() {
        server.tap.set(open: false)
        server.listener.remove()
        readers = []
        server.board.publish(.unknown)
    }
}

/// A program that listens, on the gateway's side.
private final class ListenReader {
    /// Samples that are copied for one program at a time.
    private static let piece = 8192

    private let channel: LineChannel
    /// The number of its next sample in the tap.
    private(set) var next: UInt64
    private(set) var figures = (sent: 0, lost: 0)
    /// Samples lost since the last header.
    private var lost = 0
    var isOver = false

    init(_ socket: consuming Descriptor, next: UInt64) {
        channel = LineChannel(socket)
        self.next = next
        channel.refuseInput()
    }

    /// A program that hangs up is reported without being asked for; what it sends is not wanted.
    var entry: PollEntry { PollEntry(channel.number, channel.sendEvents) }

    var stalledSince: BootInstant? { channel.stalledSince }

    /// Says that there are too many programs.
    func refuse(_ now: BootInstant) {
        let why = "\(ListenReport.readerLimit) programs listen already; end one of them"
        channel.outgoing = Array("{\"error\": \"\(why)\"}\n".utf8)
        _ = channel.send(now: now)
    }

    /// Sends until the program has all samples, or its socket takes no more.
    func serve(_ tap: AudioTap, _ facts: ListenFacts, _ now: BootInstant) {
        let skipped = tap.skipLost(&next)
        lost += skipped
        figures.lost += skipped
        while true {
            if channel.outgoing.isEmpty {
                guard let block = tap.read(&next, atMost: Self.piece) else { return }
                channel.outgoing =
                    AudioHeader.line(block, lost: lost, facts) + block.samples.littleEndianBytes
                figures.sent += block.samples.count
                lost = 0
            }
            switch channel.send(now: now) {
            case .moved: continue
            case .waits: return
            case .ended: return isOver = true
            }
        }
    }
}
