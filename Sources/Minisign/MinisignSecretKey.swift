// The secret half of a minisign key, and signing with it.
import CCrypto
package import Host

/// A secret key of minisign, from a file of `minisign -G`, with or without a password.
///
/// The format is on https://jedisct1.github.io/minisign/ under "Secret key format". libcrypto owns
/// the key and wipes it when this value is destroyed. Copies of the file's text stay in memory.
/// Not Sendable: one thread signs, or a lock protects it.
///
/// The checksum of the file is not verified: it is a BLAKE2b-256, which libcrypto has only since
/// 3.2, and minisign leaves it empty in a file without a password. Instead, the public key is
/// derived from the seed and compared with the one beside it, which is encrypted, too. This finds a
/// wrong password as surely as the checksum does, and damage to either, but not to the key's id:
/// then `verify` and minisign refuse each new signature, because it names an unknown key.
package struct MinisignSecretKey: ~Copyable {
    package let publicKey: MinisignPublicKey
    private let key: Ed25519Key

    /// Parses the text of a file minisign.key and decrypts it.
    ///
    /// `password`: without a line end; ignored if the file is not encrypted. Decryption takes up to
    /// 1 GiB of memory and a few seconds, as in minisign. Throws a Failure for a wrong or missing
    /// password, and for a text that is not such a file or is longer than 1 kB.
    package init(_ text: String, password: [UInt8]? = nil) throws(Failure) {
        var file = try SecretKeyFile(text)
        defer { file.wipe() }
        if file.isEncrypted { try file.decrypt(password) }
        let key = try Ed25519Key(seed: file.seed)
        let publicHalf = try key.publicKey()
        guard file.publicHalf.elementsEqual(publicHalf) else {
            throw Failure(
                file.isEncrypted
                    ? "wrong password for the minisign secret key, or a damaged file"
                    : "the minisign secret key is damaged; restore its file from a copy"
            )
        }
        publicKey = MinisignPublicKey(id: file.id, key: publicHalf)
        self.key = key
    }

    /// Returns a prehashed signature of a message, which `minisign -V` and `verify` accept.
    ///
    /// `trustedComment`: one line without invisible characters, except tabs. Throws a Failure for
    /// another one, and for one with which the signature is longer than
    /// `MinisignSignature.maxBytes`.
    package func sign(
        _ message: [UInt8],
        trustedComment: String
    ) throws(Failure) -> MinisignSignature {
        guard MinisignLines.isAllowed(trustedComment) else {
            throw Failure("the trusted comment has a line end or other invisible characters")
        }
        let signature = try key.sign(try blake2b(message))
        let signed = MinisignSignature(
            by: publicKey.id,
            signature,
            trustedComment: trustedComment,
            global: try key.sign(signature + Array(trustedComment.utf8))
        )
        let excess = signed.text.utf8.count - MinisignSignature.maxBytes
        guard excess <= 0 else {
            throw Failure("the trusted comment is \(excess) bytes too long; shorten it")
        }
        return signed
    }
}

/// The bytes of a secret key's file, which `wipe` overwrites.
private struct SecretKeyFile {
    /// Two bytes each: signature, key derivation and checksum; then the salt (32), opslimit and
    /// memlimit (8 each, little-endian), and the part that is encrypted: key id (8), seed (32),
    /// public key (32) and checksum (32).
    private var bytes: [UInt8]
    let isEncrypted: Bool

    private static let salt = 6..<38
    private static let encrypted = 54..<158

    init(_ text: String) throws(Failure) {
        var lines = try MinisignLines(text, of: "minisign secret key", expected: 2...2)
        _ = try lines.comment(MinisignLines.untrusted)
        bytes = try lines.base64(length: Self.encrypted.upperBound)
        guard bytes.starts(with: MinisignPublicKey.algorithm), bytes[4..<6].elementsEqual("B2".utf8)
        else { throw Failure("the minisign secret key is not an Ed25519 key of minisign") }
        isEncrypted = bytes[2..<4].elementsEqual("Sc".utf8)
        guard isEncrypted || bytes[2..<4].elementsEqual([0, 0]) else {
            throw Failure("the minisign secret key is encrypted, but not with scrypt")
        }
    }

    var id: MinisignPublicKey.ID { .init(bytes: Array(bytes[54..<62])) }
    var seed: ArraySlice<UInt8> { bytes[62..<94] }
    var publicHalf: ArraySlice<UInt8> { bytes[94..<126] }

    /// Decrypts the bytes in place: they are XORed with a stream that scrypt derives.
    mutating func decrypt(_ password: [UInt8]?) throws(Failure) {
        guard let password else {
            throw Failure("the minisign secret key is encrypted; give its password")
        }
        let cost = try ScryptCost(operations: integer(at: 38), memory: integer(at: 46))
        var stream = try cost.derive(Self.encrypted.count, from: password, salt: bytes[Self.salt])
        for (index, byte) in zip(Self.encrypted, stream) { bytes[index] ^= byte }
        cleanse(&stream)
    }

    mutating func wipe() { cleanse(&bytes) }

    private func integer(at offset: Int) -> UInt64 {
        bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
