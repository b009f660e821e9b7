// Makes, parses, hashes and compares enrolment codes and tokens.
import CCrypto
import Foundation
import ServerBase

/// An enrolment code or a token, made by this server or presented by a client.
///
/// A secret that this server made is shown once, and only its hash is stored.
package struct GivenSecret: Sendable {
    package let text: String

    /// The SHA-256 of the text; a plain hash is enough for a long random secret.
    package var digest: [UInt8] { sha256(text) }

    // MARK: Codes

    /// Crockford's base 32, without I, L, O and U, which are easily misread.
    private static let letters = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    private static let codeLength = 16

    /// Returns a new code of 80 random bits: `K7QM-2F9X-88TR-CW4N`.
    static func newCode() -> GivenSecret {
        // Swift's generator uses getrandom(2).
        GivenSecret(text: String((0..<codeLength).map { _ in letters[Int.random(in: 0..<32)] }))
    }

    /// Parses a code as a person typed it: any case, blanks and hyphens allowed; nil if invalid.
    package init?(typed text: String) {
        guard text.utf8.count <= 64 else { return nil }
        let read = text.uppercased().filter { $0 != "-" && $0 != " " }.map { letter -> Character in
            switch letter {
            case "O": "0"
            case "I", "L": "1"
            default: letter
            }
        }
        guard read.count == Self.codeLength, read.allSatisfy(Self.letters.contains) else {
            return nil
        }
        self.text = String(read)
    }

    /// The code in groups of four letters.
    package var grouped: String {
        stride(from: 0, to: text.count, by: 4).map { String(text.dropFirst($0).prefix(4)) }
            .joined(separator: "-")
    }

    // MARK: Tokens

    package init(text: String) { self.text = text }

    /// A token that a device generated; nil if it is too short to be random or unfit for a header.
    package init?(wanted text: String) {
        guard text.utf8.allSatisfy(isPlain), (32...128).contains(text.utf8.count) else {
            return nil
        }
        self.text = text
    }

    /// Returns a new token of 256 random bits, fit for a header field.
    static func newToken() -> GivenSecret {
        GivenSecret(text: base64URL((0..<32).map { _ in UInt8.random(in: .min ... .max) }))
    }

    /// Compares in constant time, so that timing does not reveal where they differ.
    static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}
