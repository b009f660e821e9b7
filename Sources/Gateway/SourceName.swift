// The names of the sources.

/// The sources, with the names that `status` uses.
enum SourceName: String, Sendable, CaseIterable {
    case beacons
    case location
    case audio
}
