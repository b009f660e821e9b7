// The streams of records that a server receives, each a table of its own.

/// A stream of records; the raw value is its number in the database and in record ids.
package enum Stream: Int, Sendable, CaseIterable {
    case location = 1
    case audio = 2
    case beacons = 3
    case events = 4
}
