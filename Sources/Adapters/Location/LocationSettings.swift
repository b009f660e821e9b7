// The settings of the location source.
package import Configuration
package import Host

/// The settings of the location source (`[location]`).
package struct LocationSettings: Configurable {
    package var isEnabled = true
    package var gpsd = HostPort(host: "localhost", port: 2947)
    /// At most one fix per interval is stored.
    package var interval = Duration.seconds(10)
    /// Metres to move before another fix is stored.
    package var minDistance = 0.0

    package init() {}

    /// `gpsd at localhost:2947`.
    var name: String { "gpsd at \(gpsd)" }

    package static var keys: [Key<Self>] {
        Key("enabled", \.isEnabled, .boolean).remote(onlyOff: true).says(
            "Collect the position from gpsd."
        )
        Key("gpsd", \.gpsd, .hostPort).says("Where gpsd listens.")
        Key("interval", \.interval, .duration(.zero ... .days(1)))
            .remote().says("At most one position is kept in each interval.")
        Key("min_distance", \.minDistance, .number(0...100_000, unit: "metres"))
            .remote().says("Distance moved before another position is kept.")
    }
}
