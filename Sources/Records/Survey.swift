// Surveys: how well beacons are received from which position, between a start and a stop.
import Glibc
package import Host

/// The record of a finished survey.
package struct Survey: Sendable, Equatable {
    package var name: String
    package var start: Stamp
    /// The row of `boots` that `start` belongs to.
    package var startBoot: Int64
    package var end: Stamp
    /// The fields `track` and `beacons` of its record, as the text of a JSON object.
    package var report: String

    package init(
        name: String,
        start: Stamp,
        startBoot: Int64,
        end: Stamp,
        report: String
    ) {
        self.name = name
        self.start = start
        self.startBoot = startBoot
        self.end = end
        self.report = report
    }
}

extension Stream {
    package static let surveys = Stream(5, "surveys")
}

extension Survey: PlainRecord {
    package static let kind = StreamKind(
        .surveys,
        wire: "waypost_surveys",
        columns: [
            .text("name"), .moment("start"), Column("end", key: "end", .timestamp),
            .members("report"),
        ],
        isAlwaysShown: false
    )

    package var stamp: Stamp { end }

    package var values: [ColumnValue] {
        [.text(name), .moment(boot: startBoot, start), .same, .text(report)]
    }
}

/// A position on the ground, in degrees.
package struct Place: Sendable, Equatable {
    package var latitude: Double
    package var longitude: Double

    package init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
    }

    /// Returns the haversine distance on a sphere with a radius of 6,371,009 m.
    package func metres(to other: Self) -> Double {
        let radians = Double.pi / 180
        let north = sin((other.latitude - latitude) * radians / 2)
        let east = sin((other.longitude - longitude) * radians / 2)
        let chord =
            north * north + cos(latitude * radians) * cos(other.latitude * radians) * east * east
        return 2 * 6_371_009 * asin(min(1, chord.squareRoot()))
    }
}
