// ChaCha20-Poly1305 as the Noise protocol uses it, and X25519, both by libcrypto.
import CCrypto
import Host

/// The only owner of a cipher context of libcrypto with its key.
struct CipherContext: ~Copyable {
    /// nil if out of memory; then every operation fails.
    let pointer: OpaquePointer?

    init() { pointer = EVP_CIPHER_CTX_new() }

    deinit {
        // Wipes the key, too.
        EVP_CIPHER_CTX_free(pointer)
    }
}

/// One direction of a Noise session (Noise specification, 5.1, CipherState).
///
/// Each message has the next number as its nonce; a failed `open` ends the session.
final class NoiseCipher {
    /// The bytes that a sealed message is longer than its content.
    static let tagLength = 16

    private let context = CipherContext()
    private let key: [UInt8]
    private var number: UInt64 = 0

    /// `key`: 32 bytes.
    init(key: [UInt8]) { self.key = key }

    /// Returns the next nonce: four zero bytes and the message's number, little-endian (12.2).
    private func nextNonce() -> [UInt8] {
        defer { number &+= 1 }
        return [0, 0, 0, 0] + littleEndian(number)
    }

    /// Encrypts a message; nil if libcrypto fails, which only a lack of memory makes it do.
    func seal(_ plain: [UInt8], with data: [UInt8] = []) -> [UInt8]? {
        let nonce = nextNonce()
        var sealed = [UInt8](repeating: 0, count: plain.count + Self.tagLength)
        var length: Int32 = 0
        let isDone = sealed.withUnsafeMutableBytes { buffer in
            let bytes = buffer.assumingMemoryBound(to: UInt8.self)
            let tag = bytes.baseAddress.map { $0 + plain.count }
            return EVP_EncryptInit_ex(context.pointer, EVP_chacha20_poly1305(), nil, key, nonce)
                == 1
                && EVP_EncryptUpdate(context.pointer, nil, &length, data, Int32(data.count)) == 1
                && EVP_EncryptUpdate(
                    context.pointer,
                    bytes.baseAddress,
                    &length,
                    plain,
                    Int32(plain.count)
                ) == 1
                && EVP_EncryptFinal_ex(context.pointer, tag, &length) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context.pointer,
                    EVP_CTRL_AEAD_GET_TAG,
                    Int32(Self.tagLength),
                    tag
                ) == 1
        }
        return isDone ? sealed : nil
    }

    /// Decrypts a message; nil if it was not sealed with this key, number and `data`.
    func open(_ sealed: ArraySlice<UInt8>, with data: [UInt8] = []) -> [UInt8]? {
        guard sealed.count >= Self.tagLength else { return nil }
        let nonce = nextNonce()
        let text = Array(sealed.dropLast(Self.tagLength))
        var tag = Array(sealed.suffix(Self.tagLength))
        // One byte more: an empty message has a place, too.
        var plain = [UInt8](repeating: 0, count: text.count + 1)
        var (length, rest): (Int32, Int32) = (0, 0)
        guard
            EVP_DecryptInit_ex(context.pointer, EVP_chacha20_poly1305(), nil, key, nonce) == 1,
            EVP_CIPHER_CTX_ctrl(
                context.pointer,
                EVP_CTRL_AEAD_SET_TAG,
                Int32(tag.count),
                &tag
            ) == 1,
            EVP_DecryptUpdate(context.pointer, nil, &length, data, Int32(data.count)) == 1,
            EVP_DecryptUpdate(context.pointer, &plain, &length, text, Int32(text.count)) == 1,
            EVP_DecryptFinal_ex(context.pointer, &tag, &rest) == 1
        else { return nil }
        plain.removeLast()
        return plain
    }
}

/// The only owner of a key of libcrypto on Curve25519.
private struct KeyHandle: ~Copyable {
    /// nil if the bytes are not such a key.
    let pointer: OpaquePointer?

    init(private bytes: [UInt8]) {
        pointer = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nil, bytes, bytes.count)
    }

    init(public bytes: [UInt8]) {
        pointer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, bytes, bytes.count)
    }

    deinit { EVP_PKEY_free(pointer) }
}

/// The only owner of a key agreement of libcrypto.
private struct AgreementHandle: ~Copyable {
    let pointer: OpaquePointer?

    deinit { EVP_PKEY_CTX_free(pointer) }
}

/// Key agreement on Curve25519 (RFC 7748).
enum X25519 {
    static let length = 32

    /// Returns 32 random bytes of the kernel.
    static func newPrivateKey() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    /// Returns the public key of a private one; nil if that is not 32 bytes long.
    static func publicKey(of privateKey: [UInt8]) -> [UInt8]? {
        let own = KeyHandle(private: privateKey)
        var (key, count) = ([UInt8](repeating: 0, count: length), length)
        guard own.pointer != nil, EVP_PKEY_get_raw_public_key(own.pointer, &key, &count) == 1,
            count == length
        else { return nil }
        return key
    }

    /// Returns the secret that both sides can compute; nil for a public key of low order, with
    /// which anybody could.
    static func sharedSecret(_ privateKey: [UInt8], _ publicKey: [UInt8]) -> [UInt8]? {
        let own = KeyHandle(private: privateKey)
        let other = KeyHandle(public: publicKey)
        guard own.pointer != nil, other.pointer != nil else { return nil }
        let agreement = AgreementHandle(pointer: EVP_PKEY_CTX_new(own.pointer, nil))
        var (secret, count) = ([UInt8](repeating: 0, count: length), length)
        guard EVP_PKEY_derive_init(agreement.pointer) == 1,
            EVP_PKEY_derive_set_peer(agreement.pointer, other.pointer) == 1,
            EVP_PKEY_derive(agreement.pointer, &secret, &count) == 1, count == length
        else { return nil }
        return secret
    }
}
