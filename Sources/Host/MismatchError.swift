// The reason why a value was refused.

/// A value was refused; `message` says why.
package struct MismatchError: Error, Equatable {
    package var message: String

    package init(_ message: String) {
        self.message = message
    }
}

extension Result where Failure == MismatchError {
    /// A refusal, with its reason.
    package static func mismatch(_ message: String) -> Self { .failure(MismatchError(message)) }
}
