// Why a text is not what it should be.

/// Why a value was refused.
package struct Mismatch: Error, Equatable {
    package var message: String

    package init(_ message: String) {
        self.message = message
    }
}
