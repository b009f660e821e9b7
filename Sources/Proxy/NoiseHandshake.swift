// The answering side of a Noise_NNpsk0_25519_ChaChaPoly_SHA256 handshake.
import CCrypto

/// A handshake: `read` takes the client's message, then `answer` makes ours (Noise specification,
/// revision 34, sections 5 and 7; the pattern is `-> psk, e` and `<- e, ee`).
struct NoiseHandshake {
    static let protocolName = "Noise_NNpsk0_25519_ChaChaPoly_SHA256"

    /// `ck` and `h` of the specification.
    private var chain: [UInt8]
    private var hash: [UInt8]
    private var clientKey: [UInt8] = []

    /// `key`: the 32 bytes that both sides know; `prologue`: what was exchanged before.
    init(key: [UInt8], prologue: [UInt8]) {
        // A name longer than the hash is hashed (5.2).
        hash = Digest.sha256(Array(Self.protocolName.utf8))
        chain = hash
        mix(prologue)
        let keys = Digest.expand(chain, key, count: 3)
        chain = keys[0]
        mix(keys[1])
    }

    /// Reads the client's message and returns its payload; nil if the client has another key.
    mutating func read(_ message: ArraySlice<UInt8>) -> [UInt8]? {
        guard message.count >= X25519.length else { return nil }
        clientKey = Array(message.prefix(X25519.length))
        mix(clientKey)
        // With a psk the ephemeral key is mixed into the keys, too (9.2).
        let cipher = NoiseCipher(key: nextKey(clientKey))
        let sealed = message.dropFirst(X25519.length)
        guard let payload = cipher.open(sealed, with: hash) else { return nil }
        mix(Array(sealed))
        return payload
    }

    /// Returns our message and the ciphers of both directions; nil if the client's key is of low
    /// order.
    ///
    /// `ephemeral`: a new private key, which is used once.
    mutating func answer(
        _ payload: [UInt8] = [],
        ephemeral: [UInt8] = X25519.newPrivateKey()
    ) -> (message: [UInt8], receiving: NoiseCipher, sending: NoiseCipher)? {
        guard let ownKey = X25519.publicKey(of: ephemeral),
            let secret = X25519.sharedSecret(ephemeral, clientKey)
        else { return nil }
        mix(ownKey)
        _ = nextKey(ownKey)
        let cipher = NoiseCipher(key: nextKey(secret))
        guard let sealed = cipher.seal(payload, with: hash) else { return nil }
        mix(sealed)
        let keys = Digest.expand(chain, [], count: 2)
        return (ownKey + sealed, NoiseCipher(key: keys[0]), NoiseCipher(key: keys[1]))
    }

    /// Mixes bytes into the hash of the handshake (MixHash).
    private mutating func mix(_ bytes: [UInt8]) { hash = Digest.sha256(hash + bytes) }

    /// Mixes a secret into the chain and returns the key that follows from it (MixKey).
    private mutating func nextKey(_ secret: [UInt8]) -> [UInt8] {
        let keys = Digest.expand(chain, secret, count: 2)
        chain = keys[0]
        return keys[1]
    }
}

/// SHA-256, and HKDF with it.
enum Digest {
    private static let length = 32

    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: length)
        EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil)
        return digest
    }

    private static func code(_ key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: length)
        HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &code, nil)
        return code
    }

    /// Returns two or three keys (Noise specification, 4.3, HKDF).
    static func expand(_ chain: [UInt8], _ secret: [UInt8], count: Int) -> [[UInt8]] {
        let temporary = code(chain, secret)
        var keys: [[UInt8]] = []
        for number in 1...count {
            keys.append(code(temporary, (keys.last ?? []) + [UInt8(number)]))
        }
        return keys
    }
}
