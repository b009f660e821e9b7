// What a source is called.

/// The sources by the names that `status` uses.
enum SourceName: String, Sendable, CaseIterable {
    case beacons
    case location
    case audio
}
