// Failures as people see them: an error code and a message.

/// The error codes that people see (waypost-protocol(7), ERROR CODES).
package enum ErrorCode: String, Codable, Sendable, CaseIterable {
    /// Network: no connection, DNS, TLS, timeout.
    case network = "E001"
    /// The server refused the device token.
    case tokenRefused = "E002"
    /// The server answered with an error, or the answer is not from an ingest server.
    case server = "E003"
    /// No room left to store records.
    case storageFull = "E004"
    /// No permission for a device.
    case permission = "E005"
}

/// A failure for people to read: what failed, on which named thing, why, and the next step.
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
