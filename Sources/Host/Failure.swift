// What went wrong, in the words and codes that a person sees.

/// The error codes (waypost-protocol(7), ERROR CODES).
package enum ErrorCode: String, Sendable, CaseIterable {
    /// Network: no connection, DNS, TLS, timeout.
    case network = "E001"
    /// The server refused the device token.
    case tokenRefused = "E002"
    /// The server answered with an error, or not as an ingest server would.
    case server = "E003"
    /// No room left to store records.
    case storageFull = "E004"
    /// No permission for a device.
    case permission = "E005"
}

/// A failure as people read it: what failed, on which named thing, why, and the next step.
package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
    package var code: ErrorCode?
    package var message: String

    package init(_ message: String, code: ErrorCode? = nil) {
        self.message = message
        self.code = code
    }

    package var description: String {
        code.map { "\($0.rawValue) \(message)" } ?? message
    }
}
