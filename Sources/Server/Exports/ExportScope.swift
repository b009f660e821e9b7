// The scope of an export of the archive, and its counts.
package import AudioTags
package import Host
import ServerBase

/// The devices and the range of time of an export.
package struct ExportScope: Sendable {
    /// Empty: all devices.
    package var devices: Set<String> = []
    package var since: WallTime?
    /// Excluded.
    package var until: WallTime?
    /// Positions that count instead of a device's own.
    package var positions: [String: SitePlace] = [:]
    package var names = FileNames.waypost
    /// Minutes east of UTC of the times in names and metadata of audio files.
    package var offsetMinutes = 0

    package init() {}

    /// Returns whether a time, in milliseconds since 1970, is in the range.
    func includes(_ time: Int64) -> Bool {
        since.map { time >= $0.milliseconds } ?? true
            && until.map { time < $0.milliseconds } ?? true
    }

    /// Returns whether records of a date may be in the range, or within a day of it.
    func mayInclude(date: String) -> Bool {
        guard let day = Day(date) else { return false }
        return since.map { day.end + Day.milliseconds > $0.milliseconds } ?? true
            && until.map { day.start - Day.milliseconds < $0.milliseconds } ?? true
    }
}

/// The place of a device as a person gives it, in degrees.
package struct SitePlace: Sendable, Equatable {
    package var latitude: Double
    package var longitude: Double

    package init(latitude: Double, longitude: Double) {
        (self.latitude, self.longitude) = (latitude, longitude)
    }
}

/// The counts of an export.
package struct ScienceOutcome: Sendable, Equatable {
    package var files = 0
    package var bytes: Int64 = 0
    /// Records whose audio file does not exist any more.
    package var missing = 0
    /// Records and audio files that cannot be read.
    package var unreadable = 0
    /// The path of the first file with one of them, relative to the data folder.
    package var firstUnreadable: String?
    /// Records that the server marked as dated ahead of its clock.
    package var ahead = 0
    package var deployments = 0
    package var observations = 0
    package var failures = 0

    package init() {}
}
