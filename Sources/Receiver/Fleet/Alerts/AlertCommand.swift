// A program that tells of an alert.
import Host

/// It gets the alert as JSON on its standard input and by its environment: what devices say of themselves is no part
/// of a command line.
struct AlertCommand: Sendable {
    let path: String
    /// After that it is killed, with all that it started in its process group.
    var limit = Duration.seconds(60)

    /// Waits for its end.
    ///
    /// Throws Trouble where its exit status is not 0, it took too long, or `stop` was raised.
    func run(_ alert: Alert, _ json: String, until stop: StopSignal) throws {
        let program = Program(
            path: path,
            environment: Self.environment(alert),
            input: Array((json + "\n").utf8)
        )
        try program.run(limit: limit, until: stop)
    }

    /// That of this process, and the alert's.
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
