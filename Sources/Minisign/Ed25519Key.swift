// Ed25519 (RFC 8032) and BLAKE2b-512 (RFC 7693) by libcrypto.
import CCrypto
import Host

/// The only owner of an Ed25519 key of libcrypto, public or private.
struct Ed25519Key: ~Copyable {
    /// The length of a public key and of a seed, in bytes.
    static let length = 32
    static let signatureLength = 64

    private let key: OpaquePointer

    /// Wraps a public key: any 32 bytes.
    ///
    /// If they are not a point of the curve, no signature is valid.
    init(publicKey: [UInt8]) throws(Failure) {
        guard let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, Self.length)
        else { throw failure("EVP_PKEY_new_raw_public_key") }
        self.key = key
    }

    /// Wraps a private key: a seed of 32 bytes (RFC 8032, 5.1.5), which libcrypto copies.
    init(seed: ArraySlice<UInt8>) throws(Failure) {
        let key = seed.withUnsafeBufferPointer { seed in
            EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed.baseAddress, seed.count)
        }
        guard let key else { throw failure("EVP_PKEY_new_raw_private_key") }
        self.key = key
    }

    deinit {
        // Wipes a private key, too.
        EVP_PKEY_free(key)
    }

    /// Returns the public key, 32 bytes.
    func publicKey() throws(Failure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.length)
        var length = bytes.count
        guard EVP_PKEY_get_raw_public_key(key, &bytes, &length) == 1, length == bytes.count else {
            throw failure("EVP_PKEY_get_raw_public_key")
        }
        return bytes
    }

    /// Returns the signature of a message, 64 bytes; throws for a public key.
    func sign(_ message: [UInt8]) throws(Failure) -> [UInt8] {
        let context = try DigestContext()
        var signature = [UInt8](repeating: 0, count: Self.signatureLength)
        var length = signature.count
        guard EVP_DigestSignInit(context.pointer, nil, nil, nil, key) == 1,
            EVP_DigestSign(context.pointer, &signature, &length, message, message.count) == 1,
            length == signature.count
        else { throw failure("EVP_DigestSign") }
        return signature
    }

    /// Returns whether the key's owner has signed the message.
    func isValid(_ signature: [UInt8], of message: [UInt8]) throws(Failure) -> Bool {
        let context = try DigestContext()
        guard EVP_DigestVerifyInit(context.pointer, nil, nil, nil, key) == 1 else {
            throw failure("EVP_DigestVerifyInit")
        }
        return EVP_DigestVerify(
            context.pointer,
            signature,
            signature.count,
            message,
            message.count
        ) == 1
    }
}

/// The only owner of a digest context of libcrypto.
private struct DigestContext: ~Copyable {
    let pointer: OpaquePointer

    init() throws(Failure) {
        guard let pointer = EVP_MD_CTX_new() else { throw failure("EVP_MD_CTX_new") }
        self.pointer = pointer
    }

    deinit {
        EVP_MD_CTX_free(pointer)
    }
}

/// Returns the BLAKE2b-512 of some bytes, 64 bytes.
func blake2b(_ bytes: [UInt8]) throws(Failure) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 64)
    var length: UInt32 = 0
    guard EVP_Digest(bytes, bytes.count, &digest, &length, EVP_blake2b512(), nil) == 1,
        Int(length) == digest.count
    else { throw failure("EVP_Digest") }
    return digest
}

/// Overwrites bytes that must not remain in memory.
func cleanse(_ bytes: inout [UInt8]) {
    bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
}

/// Returns the failure of a function that needs only memory and a libcrypto with the algorithm.
private func failure(_ function: String) -> Failure {
    Failure("libcrypto: \(function) failed; out of memory, or built without the algorithm")
}
