// Connections that were answered before their body was read.
import CMicrohttpd
import Glibc
import Host
import Synchronization

/// Reads and drops what a refused client still sends, so that the client can read its answer.
///
/// Closing a socket with unread bytes resets the connection, and the answer may be lost (RFC 9112,
/// section 9.6). A second descriptor therefore keeps it open until the client has seen the end.
/// Reads 64 kB of an unknown client; more stays in the kernel's buffers until the client has read
/// its answer or its time is over.
final class Lingering: Sendable {
    private struct Entry {
        var socket: Int32
        /// True if its deadline grows with the bytes that arrive.
        let isKnown: Bool
        /// Bytes that are still read.
        var left: Int
        var end: ContinuousClock.Instant

        /// The events for poll(2): more data, or only that the client closes.
        var events: Int16 { left > 0 ? Int16(POLLIN) : Lingering.closed }
    }

    private static let patience = Duration.seconds(10)
    /// POLLRDHUP of poll(2), which Glibc's module lacks.
    private static let closed: Int16 = 0x2000

    private let maximum: Int
    private let wakeup: Wakeup
    private let state = Mutex((entries: [Entry](), isStopping: false))

    init(maximum: Int) throws {
        self.maximum = maximum
        wakeup = try Wakeup()
        try OwnThread("lingering") { [self] in run() }.detach()
    }

    func add(_ socket: Int32, isKnown: Bool) {
        let kept = waypost_http_keep(socket)
        guard kept >= 0 else { return }
        state.withLock { state in
            // The oldest one has most likely read its answer.
            if state.entries.count >= maximum { close(state.entries.removeFirst().socket) }
            let left = RequestExchange.unwanted(isKnown: isKnown)
            let end = ContinuousClock.now + Self.patience
            state.entries.append(Entry(socket: kept, isKnown: isKnown, left: left, end: end))
        }
        wakeup.signal()
    }

    func finish() {
        state.withLock { $0.isStopping = true }
        wakeup.signal()
    }

    private func run() {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while wait() {
            state.withLock { state in
                state.entries = state.entries.compactMap { Self.read($0, &buffer) }
            }
        }
        state.withLock { state in
            for entry in state.entries { close(entry.socket) }
            state.entries = []
        }
    }

    /// Waits for data or a deadline; returns false at the end.
    private func wait() -> Bool {
        let (entries, isOver) = state.withLock { ($0.entries, $0.isStopping) }
        guard !isOver else { return false }
        var polled = [PollEntry(wakeup.descriptor)]
        polled += entries.map { PollEntry($0.socket, $0.events) }
        let end = entries.map(\.end).min()
        _ = Host.wait(for: &polled, timeout: end.map { $0 - .now + .milliseconds(1) })
        wakeup.clear()
        return true
    }

    /// Drops what has arrived; returns nil if the connection is closed or overdue.
    private static func read(_ entry: Entry, _ buffer: inout [UInt8]) -> Entry? {
        var entry = entry
        guard entry.end > .now, !drop(&entry, &buffer) else {
            close(entry.socket)
            return nil
        }
        return entry
    }

    /// Drops available data; returns whether the client has closed, as far as can be seen.
    private static func drop(_ entry: inout Entry, _ buffer: inout [UInt8]) -> Bool {
        guard entry.left > 0 else {
            var news = pollfd(fd: entry.socket, events: entry.events, revents: 0)
            return poll(&news, 1, 0) == 1
        }
        let maximum = min(buffer.count, entry.left)
        let count = recv(entry.socket, &buffer, maximum, Int32(MSG_DONTWAIT))
        guard count > 0 else { return count == 0 || (errno != EAGAIN && errno != EINTR) }
        entry.left -= count
        if entry.isKnown { entry.end += Duration.seconds(1) * count / Connections.slowest }
        return false
    }
}
