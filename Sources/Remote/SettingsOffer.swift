// A version of settings as the server offers it.
import Host
import JSON

/// The parameters of a job of the kind `settings`; nothing of it has been checked but its form.
package struct SettingsOffer: Sendable, Equatable {
    /// A higher version could never be followed by another one.
    private static let highest: Int64 = 999_999_999

    let version: Int64
    /// The device or the group that the signature is for.
    let recipient: String
    /// Configuration as TOML, with LF or CRLF at the ends of its lines.
    let text: String
    let signature: OfferedSignature

    /// Returns nil for members of another form.
    init?(_ members: [String: JSONValue]) {
        guard case .number(let digits)? = members["version"], let version = Int64(digits),
            (1...Self.highest).contains(version), let recipient = members.text("for"),
            case .text(let text)? = members["text"],
            !text.unicodeScalars.contains(where: \.isForbiddenInLines),
            let signature = OfferedSignature(members)
        else { return nil }
        (self.version, self.recipient, self.text) = (version, recipient, text)
        self.signature = signature
    }

    /// The bytes that a signature covers.
    var signedBytes: [UInt8] { Array("waypost-settings 1\n\(recipient)\n\(version)\n\(text)".utf8) }
}
