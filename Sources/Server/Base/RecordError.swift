// The error for a record that is not fit to be stored.

/// A record that is not fit to be stored, and the reason.
package struct RecordError: Error {
    package var reason: String

    package init(reason: String) {
        self.reason = reason
    }
}
