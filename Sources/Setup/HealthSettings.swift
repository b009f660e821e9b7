// How often the device reports its health.
package import Configuration
import Upload

/// `[health]`: the interval of the health records.
package struct HealthSettings: Configurable {
    /// The shortest interval.
    static let least = Duration.seconds(60)
    package var isEnabled = true
    /// nil for that of the uploads.
    package var interval: Duration?

    package init() {}

    package static var keys: [Key<Self>] {
        Key("enabled", \.isEnabled, .boolean)
            .says("False for a server that does not accept the stream waypost_health.")
        Key("interval", optional: \.interval, .duration(least ... .days(7)), example: .seconds(300))
            .remote().says(
                "Time from one health record to the next; else upload.interval, at least 1m."
            )
    }
}

extension Configuration {
    /// The time from one health record to the next.
    package var healthInterval: Duration {
        health.interval ?? max(upload.interval, HealthSettings.least)
    }
}
