// Telling systemd how it goes (sd_notify(3)): one datagram, no library.
import Host

/// The service manager's socket, if the process was started by one that wants to know.
struct ServiceManager: Sendable {
    private let path: String?
    /// How often it wants a sign of life; nil if it does not.
    private let watchdog: Duration?

    /// How often the gateway looks after itself: as often as is asked for, at least once in `patience`.
    func healthInterval(_ patience: Duration) -> Duration { min(patience, watchdog ?? patience) }

    init(environment: [String: String]) {
        path = environment["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        watchdog = environment["WATCHDOG_USEC"].flatMap { Int64($0) }.map { .microseconds($0 / 2) }
    }

    func notify(_ message: String) {
        guard let path else { return }
        // A leading @ names an abstract socket, whose address begins with a NUL.
        let name = path.hasPrefix("@") ? [0] + Array(path.utf8.dropFirst()) : Array(path.utf8)
        UnixSocket.send(message, to: name)
    }
}
