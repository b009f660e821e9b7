// A position, as the location stream keeps it.
package import Host

/// One position fix.
///
/// What the receiver did not report is nil, never 0.
package struct Fix: Sendable, Equatable {
    package enum Mode: Int, Sendable {
        case twoDimensional = 2
        case threeDimensional = 3
    }

    /// When the report arrived, by the board's clocks.
    package var stamp: Stamp
    /// The time that the receiver gave for it.
    package var receiverTime: WallTime?
    package var mode: Mode
    /// Degrees, WGS 84.
    package var latitude: Double
    package var longitude: Double
    /// Metres above mean sea level.
    package var altitude: Double?
    /// Metres a second over ground.
    package var speed: Double?
    /// Degrees from true north.
    package var course: Double?
    /// Metres (gpsd `eph`).
    package var horizontalAccuracy: Double?
    /// Metres (gpsd `epv`).
    package var verticalAccuracy: Double?
    /// Satellites used in the solution.
    package var satellites: Int?

    package init(stamp: Stamp, mode: Mode, latitude: Double, longitude: Double) {
        self.stamp = stamp
        self.mode = mode
        self.latitude = latitude
        self.longitude = longitude
    }
}
