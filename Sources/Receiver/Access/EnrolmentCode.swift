// Codes and tokens: made at random, shown once, kept as hashes.
import CCrypto
import Foundation

/// The 32 bytes of a text's SHA-256.
func sha256(_ text: String) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    var length: UInt32 = 0
    let bytes = Array(text.utf8)
    guard EVP_Digest(bytes, bytes.count, &digest, &length, EVP_sha256(), nil) == 1, length == 32
    else { preconditionFailure("libcrypto has no SHA-256") }
    return digest
}

/// A secret that this server gives out.
package struct GivenSecret: Sendable {
    package let text: String

    /// SHA-256: enough for what is random and long, and says nothing of it.
    var digest: [UInt8] { sha256(text) }

    // MARK: Codes

    /// Crockford's base 32: no I, L, O and U, which are taken for others.
    private static let letters = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    private static let codeLength = 16

    /// A new code of 80 random bits: `K7QM-2F9X-88TR-CW4N`.
    static func newCode() -> GivenSecret {
        // The system's generator is getrandom(2).
        GivenSecret(text: String((0..<codeLength).map { _ in letters[Int.random(in: 0..<32)] }))
    }

    /// A code as a person typed it, in any case, with blanks and hyphens; nil for what cannot be one.
    init?(typed text: String) {
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

    /// In groups of four.
    package var grouped: String {
        stride(from: 0, to: text.count, by: 4).map { String(text.dropFirst($0).prefix(4)) }
            .joined(separator: "-")
    }

    // MARK: Tokens

    package init(text: String) { self.text = text }

    /// One that a device made; nil for what is too short to be random, or not fit for a header field.
    init?(wanted text: String) {
        guard text.utf8.allSatisfy(isPlain), (32...128).contains(text.utf8.count) else {
            return nil
        }
        self.text = text
    }

    /// A new token of 256 random bits, fit for a header field.
    static func newToken() -> GivenSecret {
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        let text = Data(bytes).base64EncodedString().filter { $0 != "=" }
        return GivenSecret(text: String(text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }))
    }

    /// In a time that does not tell where they differ.
    static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}
