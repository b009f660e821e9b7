// Sends an alert by running a program.
import Host

/// A program that gets each alert as JSON on standard input and in its environment.
///
/// Text from devices never becomes part of a command line.
struct AlertCommand: Sendable {
    let path: String
    /// After this time the program is killed with its process group.
    var limit = Duration.seconds(60)

    /// Runs the program to its end.
    ///
    /// Throws a `Failure` if its exit status is not 0, it took too long, or `stop` was raised.
    func run(_ alert: Alert, _ json: String, until stop: StopSignal) throws {
        let program = Program(
            path: path,
            environment: Self.environment(alert),
            input: Array((json + "\n").utf8)
        )
        try program.run(limit: limit, until: stop)
    }

    /// This process's environment plus the alert's variables.
    private static func environment(_ alert: Alert) -> [String] {
        Program.ownEnvironment.filter { !$0.hasPrefix("WAYPOST_") } + [
            "WAYPOST_ALERT=\(alert.alert.rawValue)", "WAYPOST_ALERT_ID=\(alert.alertId)",
            "WAYPOST_AT=\(alert.at)", "WAYPOST_DEVICE=\(alert.deviceId)",
            "WAYPOST_LAST_SEEN=\(alert.lastSeen)", "WAYPOST_LOST_RECORDS=\(alert.lostRecords)",
            "WAYPOST_REASON=\(alert.reason)", "WAYPOST_TEXT=\(alert.text)",
            "WAYPOST_VERSION=\(alert.version)",
        ]
    }
}
