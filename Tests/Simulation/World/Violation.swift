// Violations that a simulation finds.

/// An invariant that does not hold.
package struct Violation: Error, CustomStringConvertible {
    /// Its short name: a failing history is shrunk as long as it breaks the same one.
    package var invariant: String
    package var words: String

    package init(_ invariant: String, _ words: String) {
        self.invariant = invariant
        self.words = words
    }

    package var description: String { "\(invariant): \(words)" }
}
