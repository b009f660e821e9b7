// Pages that browsers have open, sent to them as they change.
import Host
import Synchronization

/// A thread of its own makes the pages; it sleeps while nobody has one open.
final class LivePages: Sendable {
    /// Pages that are open at a time: of the server's connections, the others are for gateways.
    static let most = 16
    private static let tick = Duration.seconds(1)

    private static let headers = [
        ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"),
        // nginx gathers what it passes on unless it is told.
        ("X-Content-Type-Options", "nosniff"), ("X-Accel-Buffering", "no"),
    ]

    private struct Guests {
        var new: [LiveViewer] = []
        var known = 0
    }

    private let guests = Mutex(Guests())
    private let wakeup: Wakeup
    private let stop: StopSignal

    init() throws {
        wakeup = try Wakeup()
        stop = try StopSignal()
    }

    /// `changes`: how often what the pages show has changed; `mayLook`, `make`: see `LivePageController`.
    func start(
        changes: @escaping @Sendable () -> Int,
        mayLook: @escaping @Sendable (GivenSecret) -> Bool,
        make: @escaping @Sendable (LivePage) throws -> [UInt8]
    ) throws {
        try startBackgroundThread("live") { [self] in
            var desk = LivePageController(mayLook: mayLook, make: make)
            while !stop.isRaised {
                // Before the look: what changes during it is shown by the next.
                let count = changes()
                desk.round(takeNew(), changes: count, at: SystemClock().now())
                let isEmpty = note(desk.viewers.count)
                var entries = [PollEntry(wakeup.descriptor), PollEntry(stop.descriptor)]
                _ = Host.wait(for: &entries, timeout: isEmpty ? nil : Self.tick)
                wakeup.clear()
            }
        }
    }

    /// The thread ends with the page that it is making.
    func finish() { stop.raise() }

    /// An answer that goes on with a page; throws an HTTPRefusal where too many are open.
    func open(_ page: LivePage, _ session: GivenSecret) throws -> AnswerStream {
        // After so many milliseconds a browser comes back by itself.
        let stream = AnswerStream(Self.headers, first: Array("retry: 5000\n\n".utf8))
        let isTaken = guests.withLock { guests in
            guard guests.new.count + guests.known < Self.most else { return false }
            guests.new.append(LiveViewer(page: page, session: session, stream: stream))
            return true
        }
        guard isTaken else {
            throw HTTPRefusal(status: 503, reason: "many have a page open", retryAfter: 60)
        }
        wakeup.signal()
        return stream
    }

    private func takeNew() -> [LiveViewer] {
        guests.withLock { guests in
            defer { (guests.new, guests.known) = ([], guests.known + guests.new.count) }
            return guests.new
        }
    }

    /// Whether there is nobody.
    private func note(_ count: Int) -> Bool {
        guests.withLock { guests in
            guests.known = count
            return count == 0
        }
    }
}
