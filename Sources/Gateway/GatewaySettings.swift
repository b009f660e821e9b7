// What a gateway is started with, and how its main thread is called.
import Host

/// What a gateway is started with.
package struct GatewaySettings: Sendable {
    package var configuration: Configuration
    package var environment: [String: String]
    package var version: String
    package var log: Log
    /// A thread that gives no sign of life for so long hangs.
    ///
    /// After ten times as long systemd restarts the program.
    package var patience = Duration.seconds(30)

    package init(
        configuration: Configuration,
        environment: [String: String],
        version: String,
        log: Log
    ) {
        self.configuration = configuration
        self.environment = environment
        self.version = version
        self.log = log
    }
}

/// What other threads want of the main thread, and it of them.
struct GatewaySignals: Sendable {
    let wantsReload: Wakeup
    /// All parts were judged, and none is lost: the watchdog may be told so.
    let isWell: Wakeup

    init() throws {
        wantsReload = try Wakeup()
        isWell = try Wakeup()
    }
}
