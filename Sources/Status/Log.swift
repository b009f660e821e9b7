// Log lines on standard error, in the form `what happened, key: value`.
import Glibc
package import Host
package import Setup

/// Writes lines for the journal; all copies share one level.
///
/// Never blocks: lines that cannot be written, because the reader has stopped, are counted.
package struct Log: Sendable {
    private let threshold: StateBox<Configuration.LogLevel>
    /// The number of lines lost since the last one that was written.
    private let lost = StateBox(0)
    private let recent = StateBox(RecentLines())

    package init(level: Configuration.LogLevel) {
        threshold = StateBox(level)
    }

    /// The last lines, each with its time on both clocks: at most 200, and 32 kB.
    package var recentLines: [(stamp: Stamp, text: String)] { recent.value.lines }

    /// Changes the level.
    package func set(_ level: Configuration.LogLevel) { threshold.update { $0 = level } }

    package func isOn(_ level: Configuration.LogLevel) -> Bool {
        let levels = Configuration.LogLevel.allCases
        guard let own = levels.firstIndex(of: threshold.value),
            let wanted = levels.firstIndex(of: level)
        else { return false }
        return wanted <= own
    }

    package func error(_ what: String, _ values: [String: String]) { write(.error, what, values) }

    package func warning(_ what: String, _ values: [String: String]) {
        write(.warning, what, values)
    }

    package func info(_ what: String, _ values: [String: String]) { write(.info, what, values) }

    package func debug(_ what: String, _ values: [String: String]) { write(.debug, what, values) }

    private func write(
        _ level: Configuration.LogLevel,
        _ what: String,
        _ values: [String: String]
    ) {
        guard isOn(level) else { return }
        let fields = values.sorted { $0.key < $1.key }.map { ", \($0.key): \($0.value)" }.joined()
        let line = "\(level.rawValue): \(what)\(fields)"
        recent.update { $0.add(line, SystemClock().stamp()) }
        lost.update { lost in
            if lost > 0, Self.put("warning: log lines lost, lines: \(lost)") { lost = 0 }
            if lost > 0 || !Self.put(line) { lost += 1 }
        }
    }

    /// Writes a line in one call, so that lines of programs do not mix; false if it would block.
    private static func put(_ text: String) -> Bool {
        // A pipe that is ready accepts this much at once (PIPE_BUF, pipe(7)), a socket more.
        let line = Array(text.utf8.prefix(4095)) + [10]
        var entries = [PollEntry(STDERR_FILENO, PollEntry.writable)]
        _ = wait(for: &entries, timeout: .zero)
        guard entries[0].isReady else { return false }
        _ = Glibc.write(STDERR_FILENO, line, line.count)
        return true
    }
}

/// The last lines of the log, for reports.
private struct RecentLines {
    private static let maxLines = 200
    /// In characters (Unicode scalars).
    private static let longestLine = 1000
    private static let maxBytes = 32 << 10

    private(set) var lines: [(stamp: Stamp, text: String)] = []
    private var bytes = 0

    mutating func add(_ line: String, _ stamp: Stamp) {
        let line = printable(line, limit: Self.longestLine)
        lines.append((stamp, line))
        bytes += line.utf8.count
        while lines.count > Self.maxLines || bytes > Self.maxBytes {
            bytes -= lines.removeFirst().text.utf8.count
        }
    }
}
