// Notifies systemd (sd_notify(3)) with one datagram, without a library.
import Host

/// The service manager's notification socket, if the process has one.
struct ServiceManager: Sendable {
    private let path: String?
    /// Half of systemd's watchdog timeout; nil without a watchdog.
    private let watchdog: Duration?

    /// Returns the interval of the health timer: `patience`, or less if the watchdog asks for it.
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
