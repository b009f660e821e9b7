// Live pages: open browsers are notified of changes, and then request the page again.
import Host
import ServerBase
import ServerWeb
import Synchronization

/// A browser that has a page open.
struct LiveViewer: Sendable {
    let session: GivenSecret
    let stream: AnswerStream
    /// The change count at its last notification.
    var changes: Int
    /// When something was last sent to the browser.
    var written: BootInstant
}

/// Owns the background thread that notifies viewers; it sleeps while no page is open.
final class LivePages: Sendable {
    /// The maximum number of open live pages, so that connections remain for gateways.
    static let maximum = 16
    private static let tick = Duration.seconds(1)
    /// The interval of heartbeat comments: proxies close connections that are silent for a minute.
    private static let heartbeatInterval = Duration.seconds(15)
    /// Server-sent events (HTML Standard, section 9.2.6).
    private static let event = "data: changed\n\n"
    private static let heartbeat = ": \n\n"
    private static let headers = [
        ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"),
        // nginx buffers answers unless this header forbids it.
        ("X-Content-Type-Options", "nosniff"), ("X-Accel-Buffering", "no"),
    ]

    /// Viewers that wait for the thread to accept them, and the total count.
    private let openViewers = Mutex((new: [LiveViewer](), count: 0))
    private let changes: @Sendable () -> Int
    private let isValidSession: @Sendable (GivenSecret) -> Bool
    private let wakeup: Wakeup
    private let stop: StopSignal

    /// `changes` returns the change count of the pages' data.
    init(
        changes: @escaping @Sendable () -> Int,
        isValidSession: @escaping @Sendable (GivenSecret) -> Bool
    ) throws {
        (self.changes, self.isValidSession) = (changes, isValidSession)
        wakeup = try Wakeup()
        stop = try StopSignal()
    }

    /// Starts the thread.
    func start() throws {
        try startBackgroundThread("live") { [self] in
            var viewers: [LiveViewer] = []
            while !stop.isRaised {
                notifyViewers(&viewers, at: SystemClock().now())
                var entries = [PollEntry(wakeup.descriptor), PollEntry(stop.descriptor)]
                _ = Host.wait(for: &entries, timeout: viewers.isEmpty ? nil : Self.tick)
                wakeup.clear()
            }
        }
    }

    /// Stops the thread.
    func finish() { stop.raise() }

    /// Opens a viewer's stream; throws an HTTPError if too many are open.
    ///
    /// The first event makes the browser reload the page, in case it changed before the stream
    /// opened.
    func open(_ session: GivenSecret) throws -> AnswerStream {
        // `retry` sets the browser's reconnect delay in milliseconds.
        let first = Array("retry: 5000\n\n\(Self.event)".utf8)
        let viewer = LiveViewer(
            session: session,
            stream: AnswerStream(Self.headers, first: first),
            changes: changes(),
            written: SystemClock().now()
        )
        let isTaken = openViewers.withLock { openViewers in
            guard openViewers.count < Self.maximum else { return false }
            openViewers.new.append(viewer)
            openViewers.count += 1
            return true
        }
        guard isTaken else {
            throw HTTPError(status: 503, reason: "too many live pages are open", retryAfter: 60)
        }
        wakeup.signal()
        return viewer.stream
    }

    /// Notifies the viewers of changes; removes those that disconnected or whose session expired.
    func notifyViewers(_ viewers: inout [LiveViewer], at now: BootInstant) {
        viewers += openViewers.withLock { openViewers in
            defer { openViewers.new = [] }
            return openViewers.new
        }
        for viewer in viewers where !isValidSession(viewer.session) { viewer.stream.end() }
        // The daemon closes the suspended connection of a client that has left only when it is resumed.
        for viewer in viewers where viewer.stream.isOver { viewer.stream.end() }
        let before = viewers.count
        viewers.removeAll { $0.stream.isOver }
        openViewers.withLock { $0.count -= before - viewers.count }
        let count = changes()
        // Skips viewers that have not received the last event yet.
        for index in viewers.indices where viewers[index].stream.isIdle {
            let isNew = viewers[index].changes != count
            guard isNew || now - viewers[index].written >= Self.heartbeatInterval else { continue }
            viewers[index].stream.send(Array((isNew ? Self.event : Self.heartbeat).utf8))
            (viewers[index].changes, viewers[index].written) = (count, now)
        }
    }
}
