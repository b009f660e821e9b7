// A position fix, as the location stream stores it.
package import Host

/// One position fix.
///
/// A value that the GNSS receiver did not report is nil, never 0.
package struct Fix: Sendable, Equatable {
    package enum Mode: Int, Sendable {
        case twoDimensional = 2
        case threeDimensional = 3
    }

    /// When the report arrived, by the device's clocks.
    package var stamp: Stamp
    /// The time that the GNSS receiver reported, whether it is trusted or not.
    package var receiverTime: WallTime?
    package var mode: Mode
    /// Degrees, WGS 84.
    package var latitude: Double
    package var longitude: Double
    /// Metres above mean sea level.
    package var altitude: Double?
    /// Metres per second over ground.
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

extension Stream {
    package static let location = Stream(1, "location")
}

extension Fix: PlainRecord {
    package static let kind = StreamKind(
        .location,
        wire: "linux_gpsd_location",
        columns: [
            .number("latitude_e7", as: "latitude", decimals: 7),
            .number("longitude_e7", as: "longitude", decimals: 7),
            .number("altitude_dm", as: "altitude", decimals: 1),
            .number("speed_cm_s", as: "speed", decimals: 2),
            .number("course_decideg", as: "course", decimals: 1),
            .number("horizontal_dm", as: "horizontal_accuracy", decimals: 1),
            .number("vertical_dm", as: "vertical_accuracy", decimals: 1),
            .choice("mode", as: "fix", [2: "2d", 3: "3d"]),
            .integer("satellites"),
            .hidden("receiver_time"),
        ]
    )

    /// At least 0 and below 360: a value that rounds to 360 becomes 0, north.
    private var courseKept: Double? {
        course.map { ($0 * 10).rounded() < 3600 ? $0 : 0 }
    }

    package var values: [ColumnValue] {
        [
            .number(latitude), .number(longitude), ColumnValue(altitude), ColumnValue(speed),
            ColumnValue(courseKept), ColumnValue(horizontalAccuracy),
            ColumnValue(verticalAccuracy), .integer(Int64(mode.rawValue)), ColumnValue(satellites),
            ColumnValue(receiverTime.map { Int($0.milliseconds) }),
        ]
    }
}
