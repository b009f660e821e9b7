// The error for a record that is not fit to be stored.

/// A record that is not fit to be stored, and the reason.
struct RecordError: Error {
    var reason: String
}
