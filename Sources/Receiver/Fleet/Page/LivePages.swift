// Live pages: sent to open browsers whenever they change.
import Host
import Synchronization

/// Owns the background thread that renders live pages; it sleeps while no page is open.
final class LivePages: Sendable {
    /// The maximum number of open live pages; the server's other connections are for gateways.
    static let most = 16
    private static let tick = Duration.seconds(1)

    private static let headers = [
        ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"),
        // nginx buffers answers unless this header forbids it.
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

    /// Starts the thread; `changes` returns the change count, for `mayLook` and `make` see
    /// `LivePageController`.
    func start(
        changes: @escaping @Sendable () -> Int,
        mayLook: @escaping @Sendable (GivenSecret) -> Bool,
        make: @escaping @Sendable (LivePage) throws -> [UInt8]
    ) throws {
        try startBackgroundThread("live") { [self] in
            var desk = LivePageController(mayLook: mayLook, make: make)
            while !stop.isRaised {
                // Read before rendering: changes during it are shown by the next round.
                let count = changes()
                desk.round(takeNew(), changes: count, at: SystemClock().now())
                let isEmpty = note(desk.viewers.count)
                var entries = [PollEntry(wakeup.descriptor), PollEntry(stop.descriptor)]
                _ = Host.wait(for: &entries, timeout: isEmpty ? nil : Self.tick)
                wakeup.clear()
            }
        }
    }

    /// Stops the thread after the page that it is rendering.
    func finish() { stop.raise() }

    /// Opens a streamed answer with a page; throws an HTTPRefusal if too many are open.
    func open(_ page: LivePage, _ session: GivenSecret) throws -> AnswerStream {
        // The browser reconnects after so many milliseconds.
        let stream = AnswerStream(Self.headers, first: Array("retry: 5000\n\n".utf8))
        let isTaken = guests.withLock { guests in
            guard guests.new.count + guests.known < Self.most else { return false }
            guests.new.append(LiveViewer(page: page, session: session, stream: stream))
            return true
        }
        guard isTaken else {
            throw HTTPRefusal(status: 503, reason: "too many live pages are open", retryAfter: 60)
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

    /// Records the number of viewers; returns whether there are none.
    private func note(_ count: Int) -> Bool {
        guests.withLock { guests in
            guests.known = count
            return count == 0
        }
    }
}
