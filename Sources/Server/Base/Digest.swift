// Hashes and their texts.
import CCrypto
import Foundation

/// Returns the SHA-256 of a text, 32 bytes.
package func sha256(_ text: String) -> [UInt8] { sha256(Array(text.utf8)) }

/// Returns the SHA-256 of some bytes, 32 bytes.
package func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    var length: UInt32 = 0
    guard EVP_Digest(bytes, bytes.count, &digest, &length, EVP_sha256(), nil) == 1, length == 32
    else { preconditionFailure("libcrypto has no SHA-256") }
    return digest
}

/// Returns base64url without padding (RFC 4648, section 5).
package func base64URL(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString()
    return String(text.compactMap { $0 == "=" ? nil : $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
}
