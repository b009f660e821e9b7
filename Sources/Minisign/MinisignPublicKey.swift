// The public half of a minisign key, and verification with it.
package import Host

/// A public key of minisign, with which anyone can verify the owner's signatures.
///
/// The format is on https://jedisct1.github.io/minisign/ under "Public key format".
package struct MinisignPublicKey: Sendable, Equatable {
    /// A random number of `minisign -G` that tells keys apart; anyone can copy it.
    package struct ID: Sendable, Hashable, CustomStringConvertible {
        static let length = 8

        let bytes: [UInt8]

        /// 16 hexadecimal digits as minisign prints them: "EAC60FA2F8AE6883".
        package var description: String {
            hex(bytes.reversed()).uppercased()
        }
    }

    /// "Ed" begins public and secret keys.
    static let algorithm = Array("Ed".utf8)

    package let id: ID
    /// 32 bytes.
    let key: [UInt8]

    init(id: ID, key: [UInt8]) {
        (self.id, self.key) = (id, key)
    }

    /// Parses the text of a file minisign.pub, or only its line of base64.
    ///
    /// Throws a Failure that names the line for anything else, and for more than 1 kB.
    package init(_ text: String) throws(Failure) {
        var lines = try MinisignLines(text, of: "minisign public key", expected: 1...2)
        if lines.count == 2 { _ = try lines.comment(MinisignLines.untrusted) }
        let bytes = try lines.base64(length: 2 + ID.length + Ed25519Key.length)
        guard bytes.starts(with: Self.algorithm) else {
            throw Failure("the minisign public key is not for Ed25519; make one with: minisign -G")
        }
        id = ID(bytes: Array(bytes[2..<10]))
        key = Array(bytes[10...])
    }

    /// The key in base64, 56 characters, as `minisign -V -P` takes it.
    package var base64: String { encodedBase64(Self.algorithm + id.bytes + key) }

    /// Throws a Failure unless the key's owner has signed the message and the trusted comment.
    ///
    /// minisign does not sign the algorithm: from a prehashed signature anyone can make a legacy
    /// one of the message's digest, 64 bytes that look random. If such a message could mean
    /// something, check that the signature's algorithm is `.prehashed`.
    package func verify(
        _ signature: MinisignSignature,
        of message: [UInt8]
    ) throws(Failure) {
        guard signature.keyID == id else {
            throw Failure(
                "the signature is by key \(signature.keyID), not by key \(id); "
                    + "sign with the other key, or verify with this one's public key"
            )
        }
        let publicKey = try Ed25519Key(publicKey: key)
        let signed = signature.algorithm == .prehashed ? try blake2b(message) : message
        guard try publicKey.isValid(signature.signature, of: signed) else {
            throw Failure("the signature by key \(id) does not match: the content was changed")
        }
        guard try publicKey.isValid(signature.global, of: signature.globallySigned) else {
            throw Failure(
                "the signature by key \(id) does not match its trusted comment, which was changed"
            )
        }
    }
}
