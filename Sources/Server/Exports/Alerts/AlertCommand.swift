// Sends an alert by running a program.
import Glibc
import Host

/// A program that gets each alert as JSON on standard input and in its environment.
///
/// Its output goes to this process's standard error: standard output has only the line with the
/// server's address.
/// Text from devices never becomes part of a command line.
struct AlertCommand: Sendable {
    let path: String
    /// After this time the program is killed with its process group.
    var limit = Duration.seconds(60)

    /// Runs the program to its end.
    ///
    /// Throws a `Failure` if its exit status is not 0, it took too long, or `stop` was raised.
    func run(_ alert: Alert, _ json: String, until stop: StopSignal) throws {
        let program = try start(alert, input: Array((json + "\n").utf8))
        let end = SystemClock().now() + limit
        var entries = [program.end, PollEntry(stop.descriptor)]
        while !entries[0].isReady {
            let left = end - SystemClock().now()
            // Killed by its deinit.
            guard left > .zero, !stop.isRaised else {
                throw Failure("\(path): killed after \(limit)")
            }
            _ = stop.wait(for: &entries, timeout: left)
        }
        let status = program.wait()
        guard status.isSuccess else { throw Failure("\(path): \(status)") }
    }

    private func start(_ alert: Alert, input: [UInt8]) throws -> ChildProcess {
        let pipe = try makePipe()
        defer {
            close(pipe.reading)
            close(pipe.writing)
        }
        // A pipe holds 64 kB (pipe(7)), so nobody has to read it yet.
        writeAll(input, to: pipe.writing)
        do {
            return try ChildProcess(
                path,
                [],
                environment: Self.environment(alert),
                files: [STDIN_FILENO: pipe.reading, STDOUT_FILENO: STDERR_FILENO]
            )
        } catch {
            throw Failure("\(path): \(error.reason)")
        }
    }

    /// This process's environment plus the alert's variables.
    private static func environment(_ alert: Alert) -> [String] {
        ChildProcess.ownEnvironment.filter { !$0.hasPrefix("WAYPOST_") } + [
            "WAYPOST_ALERT=\(alert.alert.rawValue)", "WAYPOST_ALERT_ID=\(alert.alertId)",
            "WAYPOST_AT=\(alert.at)", "WAYPOST_DEVICE=\(alert.deviceId)",
            "WAYPOST_LAST_SEEN=\(alert.lastSeen)", "WAYPOST_LOST_RECORDS=\(alert.lostRecords)",
            "WAYPOST_REASON=\(alert.reason)", "WAYPOST_TEXT=\(alert.text)",
            "WAYPOST_VERSION=\(alert.version)",
        ]
    }
}
