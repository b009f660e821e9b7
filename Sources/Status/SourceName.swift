// The names of the sources.

/// The sources, with the names that `status` uses.
package enum SourceName: String, Sendable, CaseIterable {
    case beacons
    case location
    case audio
}
