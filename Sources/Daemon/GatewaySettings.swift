// The settings of a gateway, and the signals between its threads and the main thread.
import Host
package import Remote
package import Setup
package import Status

/// The settings that a gateway is started with.
package struct GatewaySettings: Sendable {
    package var configuration: Configuration
    package var environment: [String: String]
    package var version: String
    package var log: Log
    /// The time without a heartbeat after which a thread counts as hung.
    ///
    /// After ten times this, systemd restarts the program.
    package var patience = Duration.seconds(30)
    /// The command that examines the device for a report; empty: reports are made without it.
    package var doctor: [String] = []
    /// Reads the configuration with settings from the server above it; throws its errors.
    package var trying: @Sendable (StoredSettings.Version) throws -> Configuration = { _ in
        throw Failure("this program takes no settings")
    }

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

/// Signals between the main thread and the other threads.
struct GatewaySignals: Sendable {
    let wantsReload: Wakeup
    /// Signalled when all parts were checked and none is lost: the watchdog may be notified.
    let isWell: Wakeup
    /// Signalled when the server has accepted the device and the sources may start.
    let wasEnrolled: Wakeup

    init() throws {
        wantsReload = try Wakeup()
        isWell = try Wakeup()
        wasEnrolled = try Wakeup()
    }
}
