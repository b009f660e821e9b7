// Deployments of Camtrap DP: a device at one place with one way of recording.
import Host
import ServerIndex

/// A stretch of a device's time without a change of position, schedule, sample rate or format.
struct Deployment {
    var device: String
    /// Milliseconds since 1970.
    var start: Int64
    /// Milliseconds since 1970.
    var end: Int64
    /// True if no other one of the device begins at its end.
    var isLast: Bool
    var place: SitePlace
    /// Metres; nil if not known.
    var uncertainty: Int?
    /// Sample rate and format: `16000 Hz flac`.
    var settings: String
    /// True if some of its recordings were not dated by a clock that was set.
    var hasClockIssue = false

    var id: String {
        let digits = WallTime(milliseconds: start).rfc3339.prefix(19)
        return "\(device)_\(digits.filter { $0 != "-" && $0 != ":" })Z"
    }
}

/// The place of a device in an hour, from its fixes.
struct HourPlace {
    /// Milliseconds since 1970.
    var start: Int64
    var place: SitePlace
    /// Metres.
    var accuracy: Double?

    /// Fixes are this wrong, in metres, without being a move.
    private static let jitter = 100.0

    /// Returns the medians of the fixes of each hour, in order.
    static func hours(_ fixes: [(fix: Track.Fix, accuracy: Double?)]) -> [Self] {
        let hours = Dictionary(grouping: fixes) { $0.fix.time / 3_600_000 }
        return hours.values.compactMap { fixes in
            guard let place = median(fixes.map(\.fix)) else { return nil }
            let accuracies = fixes.compactMap(\.accuracy).sorted()
            let start = fixes.map(\.fix.time).min() ?? 0
            let accuracy = accuracies.isEmpty ? nil : accuracies[accuracies.count / 2]
            return Self(start: start, place: place, accuracy: accuracy)
        }.sorted { $0.start < $1.start }
    }

    private static func median(_ fixes: [Track.Fix]) -> SitePlace? {
        median(fixes.map { SitePlace(latitude: $0.latitude, longitude: $0.longitude) })
    }

    static func median(_ places: [SitePlace]) -> SitePlace? {
        let north = places.map(\.latitude).sorted()
        let east = places.map(\.longitude).sorted()
        guard !places.isEmpty else { return nil }
        return SitePlace(latitude: north[north.count / 2], longitude: east[east.count / 2])
    }

    /// Returns whether this hour's place is another one than that of an earlier hour.
    func isMoved(from other: Self) -> Bool {
        let certain = max(accuracy ?? 0, other.accuracy ?? 0) * 3
        return place.distance(to: other.place) > max(Self.jitter, certain)
    }
}

extension SitePlace {
    /// Returns the distance in metres on a sphere.
    func distance(to other: Self) -> Double {
        metres(from: (latitude, longitude), to: (other.latitude, other.longitude))
    }
}
