// The server's log on standard error, one line per batch or refusal.
import Foundation
import Glibc
import Host
import Synchronization

/// Writes log lines without blocking: a line that standard error cannot take at once is lost.
package struct ServerLog: Sendable {
    private let isQuiet: Bool
    /// The refusals that were logged.
    package let refusals = RefusalCounts()

    package init(isQuiet: Bool) { self.isQuiet = isQuiet }

    package func write(_ line: String) {
        if !isQuiet { warn(line) }
    }

    /// Writes a line even in quiet mode, because a person has to act on it.
    package func warn(_ line: String) {
        // A pipe that is ready takes this many bytes at once (PIPE_BUF, pipe(7)).
        let text =
            Array("\(Date().formatted(.iso8601)) \(Self.printable(line))".utf8.prefix(4095)) + [10]
        var entry = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLOUT) != 0 else { return }
        _ = Glibc.write(STDERR_FILENO, text, text.count)
    }

    /// Replaces control characters: a client's text must not start a line or move the cursor.
    package static func printable(_ line: String) -> String {
        String(String.UnicodeScalarView(line.unicodeScalars.map { $0.isInvisible ? "?" : $0 }))
    }
}

/// Counts refused requests by status since the start.
package final class RefusalCounts: Sendable {
    private let counts = Mutex<[Int: Int64]>([:])

    package func add(_ status: Int) { counts.withLock { $0[status, default: 0] += 1 } }

    package var all: [Int: Int64] { counts.withLock { $0 } }
}
