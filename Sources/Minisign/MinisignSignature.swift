// A signature as minisign writes it into a .minisig file.
package import Host

/// A signature of a message, and of a comment, with a minisign key.
///
/// The format is on https://jedisct1.github.io/minisign/ under "Signature format". Do not
/// trust any of it before `MinisignPublicKey.verify` has returned.
package struct MinisignSignature: Sendable {
    /// The bytes that were signed with Ed25519.
    package enum Algorithm: String, Sendable {
        /// The message itself (`minisign -S -l`).
        case legacy = "Ed"
        /// The BLAKE2b-512 of the message (`minisign -S`).
        case prehashed = "ED"
    }

    /// The size limit of a .minisig file in bytes; minisign itself reads up to 9 kB.
    package static let maxBytes = MinisignLines.maxBytes

    package let algorithm: Algorithm
    /// The id of the key that the signature claims to be from.
    package let keyID: MinisignPublicKey.ID
    /// One line without invisible characters, except tabs; anyone can change it.
    package let untrustedComment: String
    /// One line without invisible characters, except tabs; the key's owner has signed it.
    package let trustedComment: String
    /// 64 bytes, over the message.
    let signature: [UInt8]
    /// 64 bytes, over `globallySigned`.
    let global: [UInt8]

    /// The bytes that the second signature covers.
    var globallySigned: [UInt8] { signature + Array(trustedComment.utf8) }

    init(
        by keyID: MinisignPublicKey.ID,
        _ signature: [UInt8],
        trustedComment: String,
        global: [UInt8]
    ) {
        algorithm = .prehashed
        untrustedComment = "signature by minisign key \(keyID)"
        (self.keyID, self.signature) = (keyID, signature)
        (self.trustedComment, self.global) = (trustedComment, global)
    }

    /// Parses the four lines of a .minisig file, which end with LF or CR LF.
    ///
    /// Throws a Failure that names the line for anything else, and for more than `maxBytes`.
    package init(_ text: String) throws(Failure) {
        var lines = try MinisignLines(text, of: "minisign signature", expected: 4...4)
        untrustedComment = try lines.comment(MinisignLines.untrusted)
        let bytes = try lines.base64(
            length: 2 + MinisignPublicKey.ID.length + Ed25519Key.signatureLength
        )
        trustedComment = try lines.comment(MinisignLines.trusted)
        global = try lines.base64(length: Ed25519Key.signatureLength)
        let name = String(decoding: bytes.prefix(2), as: UTF8.self)
        guard let algorithm = Algorithm(rawValue: name) else {
            throw Failure("the minisign signature has an unknown algorithm; sign with: minisign -S")
        }
        self.algorithm = algorithm
        keyID = MinisignPublicKey.ID(bytes: Array(bytes[2..<10]))
        signature = Array(bytes[10...])
    }

    /// The text of a .minisig file: four lines, each with LF.
    package var text: String {
        let bytes = Array(algorithm.rawValue.utf8) + keyID.bytes + signature
        return """
            \(MinisignLines.untrusted)\(untrustedComment)
            \(encodedBase64(bytes))
            \(MinisignLines.trusted)\(trustedComment)
            \(encodedBase64(global))

            """
    }
}
