// One report of gpsd as plain values.
import Host

/// The validated contents of one gpsd line: never NaN or out of range.
enum GPSReport: Equatable {
    /// A TPV object (gpsd_json(5)).
    case position(Position)
    /// A SKY object: satellites used in the solution.
    case sky(used: Int)
    /// A DEVICES object: the GNSS receivers that gpsd knows, and which of them it has open.
    case receivers([String], open: [String])
    /// A DEVICE object: a GNSS receiver that gpsd has opened or lost.
    case receiver(path: String, isActive: Bool)
    case other

    struct Position: Equatable {
        /// 0 unknown, 1 no fix, 2 2D, 3 3D.
        var mode: Int
        var isSimulated = false
        var time: WallTime?
        var latitude: Double?
        var longitude: Double?
        /// Metres above mean sea level.
        var altitude: Double?
        var speed: Double?
        var course: Double?
        var horizontalAccuracy: Double?
        var verticalAccuracy: Double?

        var hasPlace: Bool { latitude != nil && longitude != nil }

        /// Adds the fields of another report of the same epoch.
        mutating func merge(_ other: Self) {
            mode = max(mode, other.mode)
            isSimulated = isSimulated || other.isSimulated
            // Without a time it may belong to a later epoch.
            if other.hasPlace, other.time != nil || !hasPlace {
                latitude = other.latitude
                longitude = other.longitude
            }
            time = other.time ?? time
            altitude = other.altitude ?? altitude
            speed = other.speed ?? speed
            course = other.course ?? course
            horizontalAccuracy = other.horizontalAccuracy ?? horizontalAccuracy
            verticalAccuracy = other.verticalAccuracy ?? verticalAccuracy
        }
    }
}
