// A version of settings as the server offers it.
import Host
import JSON

/// The parameters of a job of the kind `settings`; nothing of it has been checked but its form.
package struct SettingsOffer: Sendable, Equatable {
    /// A higher version could never be followed by another one.
    private static let highest: Int64 = 999_999_999
    private static let blanks: [Unicode.Scalar] = ["\t", "\r", "\n"]

    let version: Int64
    /// The device or the group that the signature is for.
    let recipient: String
    /// Configuration as TOML, with LF or CRLF at the ends of its lines.
    let text: String
    /// In the form of a minisign file.
    let signature: String?

    /// Returns nil for members of another form.
    init?(_ members: [String: JSONValue]) {
        guard case .number(let digits)? = members["version"], let version = Int64(digits),
            (1...Self.highest).contains(version), let recipient = members.text("for"),
            case .text(let text)? = members["text"],
            text.unicodeScalars.allSatisfy({ !$0.isInvisible || Self.blanks.contains($0) })
        else { return nil }
        switch members["signature"] {
        case nil, .null?: signature = nil
        case .text(let text)?: signature = text
        default: return nil
        }
        (self.version, self.recipient, self.text) = (version, recipient, text)
    }

    /// The bytes that a signature covers.
    var signedBytes: [UInt8] { Array("waypost-settings 1\n\(recipient)\n\(version)\n\(text)".utf8) }
}
