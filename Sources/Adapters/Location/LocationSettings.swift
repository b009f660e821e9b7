// What the location source is told.

/// What the location source needs to know.
package struct LocationSettings: Sendable {
    package var host: String
    package var port: UInt16
    /// At most one fix is kept in this time.
    package var interval: Duration
    /// Metres to move before another fix is kept.
    package var minDistance: Double
    /// Fixes of other dates are not kept.
    package var dates = ReceiverDates.sinceRelease

    package init(
        host: String,
        port: UInt16,
        interval: Duration = .seconds(10),
        minDistance: Double = 0
    ) {
        self.host = host
        self.port = port
        self.interval = interval
        self.minDistance = minDistance
    }

    /// `gpsd at localhost:2947`.
    var name: String { "gpsd at \(address)" }

    var address: String { "\(host):\(port)" }
}
