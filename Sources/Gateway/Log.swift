// Log lines on standard error: what happened, key: value.
internal import Glibc

/// Writes lines for the journal; the level is the configuration's.
package struct Log: Sendable {
    private let level: Configuration.LogLevel

    package init(level: Configuration.LogLevel) {
        self.level = level
    }

    package func error(_ what: String, _ values: [String: String]) { write(.error, what, values) }

    package func warning(_ what: String, _ values: [String: String]) {
        write(.warning, what, values)
    }

    package func info(_ what: String, _ values: [String: String]) { write(.info, what, values) }

    private func write(
        _ level: Configuration.LogLevel,
        _ what: String,
        _ values: [String: String]
    ) {
        let levels = Configuration.LogLevel.allCases
        guard let own = levels.firstIndex(of: self.level),
            let wanted = levels.firstIndex(of: level),
            wanted <= own
        else { return }
        let fields = values.sorted { $0.key < $1.key }.map { ", \($0.key): \($0.value)" }.joined()
        let line = "\(level.rawValue): \(what)\(fields)\n"
        // One write a line: lines of several threads do not mix.
        _ = line.withCString { Glibc.write(STDERR_FILENO, $0, strlen($0)) }
    }
}
