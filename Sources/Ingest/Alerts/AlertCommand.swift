// A program that tells of an alert.
import Glibc
import Host

/// Started by its path, never by a shell: what devices say of themselves is no part of a command line.
///
/// It gets the alert as JSON on its standard input and by its environment, and writes where this process does.
struct AlertCommand: Sendable {
    let path: String
    /// After that it is killed, with all that it started in its process group.
    var limit = Duration.seconds(60)

    /// Between two looks whether it has ended.
    private static let step = Duration.milliseconds(50)

    /// Waits for its end.
    ///
    /// Throws Trouble where its exit status is not 0, it took too long, or `stop` was raised.
    func run(_ alert: Alert, _ json: String, until stop: StopSignal) throws {
        let child = try start(alert, json)
        let end = SystemClock().now() + limit
        var status: Int32 = 0
        while waitpid(child, &status, WNOHANG) == 0 {
            guard SystemClock().now() < end, !stop.sleep(for: Self.step) else {
                kill(-child, SIGKILL)
                waitpid(child, &status, 0)
                throw Trouble("\(path): killed after \(limit)")
            }
        }
        guard status != 0 else { return }
        let signal = status & 0x7F
        throw Trouble(
            "\(path): " + (signal == 0 ? "exit status \(status >> 8 & 0xFF)" : "signal \(signal)")
        )
    }

    private func start(_ alert: Alert, _ json: String) throws -> pid_t {
        var input = [Int32](repeating: -1, count: 2)
        guard pipe(&input) == 0 else { throw Trouble("pipe", path) }
        defer { input.forEach { close($0) } }
        // No other thread starts programs.
        for end in input { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A pipe takes 64 kB at once (pipe(7)), and the alert is shorter: nobody has to read it.
        writeAll(Array((json + "\n").utf8), to: input[1])
        var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO)
        // Standard output has one line, which tells where the server listens.
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
        prepare(&attributes)
        var words = [strdup(path), nil]
        var environment = Self.environment(alert).map { strdup($0) } + [nil]
        defer { (words + environment).forEach { free($0) } }
        var child = pid_t()
        let code = posix_spawn(&child, path, &actions, &attributes, &words, &environment)
        guard code == 0 else { throw Trouble("\(path): \(String(cString: strerror(code)))") }
        return child
    }

    /// A process group of its own, and signals as they are in a program that was just started.
    private func prepare(_ attributes: inout posix_spawnattr_t) {
        var (none, defaults) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))
    }

    /// That of this process, and the alert's.
    private static func environment(_ alert: Alert) -> [String] {
        var all: [String] = []
        var entry = environ
        while let text = entry.pointee {
            all.append(String(cString: text))
            entry += 1
        }
        all.removeAll { $0.hasPrefix("WAYPOST_") }
        return all + [
            "WAYPOST_ALERT=\(alert.alert.rawValue)", "WAYPOST_ALERT_ID=\(alert.alertId)",
            "WAYPOST_AT=\(alert.at)", "WAYPOST_DEVICE=\(alert.deviceId)",
            "WAYPOST_LAST_SEEN=\(alert.lastSeen)", "WAYPOST_LOST_RECORDS=\(alert.lostRecords)",
            "WAYPOST_REASON=\(alert.reason)", "WAYPOST_TEXT=\(alert.text)",
            "WAYPOST_VERSION=\(alert.version)",
        ]
    }
}
