// Surveys in progress (waypost(1), survey).
package import Host
package import Records

/// A survey in progress, or an ended one whose record is not made yet.
package struct OpenSurvey: Sendable, Equatable {
    package var name: String
    package var start: Stamp
    package var startBoot: Int64
    /// The sequence number of its first sighting.
    package var first: Int64
    /// Its end; nil while it is in progress.
    package var end: End?

    package struct End: Sendable, Equatable {
        package var stamp: Stamp
        package var boot: Int64
        /// The sequence number of its last sighting.
        package var last: Int64
    }

    package var isOpen: Bool { end == nil }
}

/// The reason why a survey cannot be started or stopped.
package enum SurveyError: Error, Sendable, Equatable, CustomStringConvertible {
    case isOpen(String)
    case noneIsOpen

    package var description: String {
        switch self {
        case .isOpen(let name):
            "survey \"\(name)\" is going on: `waypost survey stop` ends it"
        case .noneIsOpen:
            "no survey is going on: `waypost survey start NAME` begins one"
        }
    }
}

/// One sighting during a survey.
package struct SurveySample: Sendable {
    /// The row in `beacons`; one beacon may have several.
    package var beacon: Int64
    package var rssi: Int?
    package var boot: Int64
    package var stamp: Stamp
    /// The gateway's position: the newest fix of the last ten seconds.
    package var place: Place?
}
