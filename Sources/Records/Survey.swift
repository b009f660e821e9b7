// Surveys: how well beacons are received from which position, between a start and a stop.
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
            .text("name"), .spanEnd("start"), Column("end", key: "end", .timestamp),
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

    /// Returns the distance in metres on a sphere.
    package func metres(to other: Self) -> Double {
        Host.metres(from: (latitude, longitude), to: (other.latitude, other.longitude))
    }
}
