// Log lines on standard error: what happened, key: value.
internal import Glibc

/// Writes lines for the journal; copies share the level, which is the configuration's.
package struct Log: Sendable {
    private let threshold: StateBox<Configuration.LogLevel>

    package init(level: Configuration.LogLevel) {
        threshold = StateBox(level)
    }

    /// Another level from now on.
    func set(_ level: Configuration.LogLevel) { threshold.update { $0 = level } }

    func isOn(_ level: Configuration.LogLevel) -> Bool {
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

    func debug(_ what: String, _ values: [String: String]) { write(.debug, what, values) }

    private func write(
        _ level: Configuration.LogLevel,
        _ what: String,
        _ values: [String: String]
    ) {
        guard isOn(level) else { return }
        let fields = values.sorted { $0.key < $1.key }.map { ", \($0.key): \($0.value)" }.joined()
        let line = "\(level.rawValue): \(what)\(fields)\n"
        // One write a line: lines of several threads do not mix.
        _ = line.withCString { Glibc.write(STDERR_FILENO, $0, strlen($0)) }
    }
}
