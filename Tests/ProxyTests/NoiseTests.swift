import Host
import Testing

@testable import Proxy

/// The handshake against the test vector of cacophony (Haskell), as the Noise project lists it.
@Suite struct NoiseTests {
    private func bytes(_ text: String) throws -> [UInt8] {
        let bytes = Host.bytes(hex: text)
        return try #require(bytes)
    }

    private func handshake(key: String, prologue: String = "4a6f686e2047616c74") throws
        -> NoiseHandshake
    {
        try NoiseHandshake(key: bytes(key), prologue: bytes(prologue))
    }

    private static let key = "54686973206973206d7920417573747269616e20706572737065637469766521"
    private static let ephemeral =
        "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"
    private static let first =
        "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
        + "79b962b8aff8485742ac32f905ba45369e2465fb59e138a93d67a0d1266b6a54"
    private static let second =
        "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
        + "d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2cd030fb584221e3"

    @Test func vector_handshakeAndMessages() throws {
        var handshake = try handshake(key: Self.key)
        let payload = handshake.read(try bytes(Self.first)[...])
        #expect(payload == Array("Ludwig von Mises".utf8))
        let answer = try #require(
            handshake.answer(Array("Murray Rothbard".utf8), ephemeral: try bytes(Self.ephemeral))
        )
        #expect(try answer.message == bytes(Self.second))
        let received = [
            ("e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f", "F. A. Hayek"),
            (
                "e2fa0bed0603b62d3ccac2ecabbf3fe33f3e86514909b323361626266cb2471cc8",
                "Jean-Baptiste Say"
            ),
        ]
        let sent = [
            ("64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e", "Carl Menger")
        ]
        for (sealed, plain) in received {
            #expect(answer.receiving.open(try bytes(sealed)[...]) == Array(plain.utf8))
        }
        let fourth = try bytes("457567656e2042f6686d20766f6e2042617765726b")
        for (sealed, plain) in sent {
            #expect(try answer.sending.seal(Array(plain.utf8)) == bytes(sealed))
        }
        let last = "0c01dc9cec1fe4ddd692e8dd32188aa351088dc91183639a53b57aa4692b5ebdef8b8ca111"
        #expect(try answer.sending.seal(fourth) == bytes(last))
    }

    @Test func anotherKey_orPrologue_orChangedByte_isRefused() throws {
        var other = try handshake(key: String(repeating: "00", count: 32))
        #expect(other.read(try bytes(Self.first)[...]) == nil)
        var prologue = try handshake(key: Self.key, prologue: "00")
        #expect(prologue.read(try bytes(Self.first)[...]) == nil)
        for place in [0, 31, 40, 63] {
            var message = try bytes(Self.first)
            message[place] ^= 1
            var changed = try handshake(key: Self.key)
            #expect(changed.read(message[...]) == nil, "\(place)")
        }
        var short = try handshake(key: Self.key)
        #expect(short.read(try bytes(Self.first).prefix(47)) == nil)
    }

    /// All points of order 1, 2, 4 and 8 lead to the secret zero, which needs no key to compute.
    @Test(arguments: [
        String(repeating: "00", count: 32), "01" + String(repeating: "00", count: 31),
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    ])
    func aPointOfLowOrder_givesNoSecret(hex: String) throws {
        #expect(X25519.sharedSecret(X25519.newPrivateKey(), try bytes(hex)) == nil)
    }

    @Test func replayedMessage_isRefused() throws {
        var handshake = try handshake(key: Self.key)
        _ = handshake.read(try bytes(Self.first)[...])
        let answer = try #require(handshake.answer(ephemeral: try bytes(Self.ephemeral)))
        let again = NoiseCipher(key: [UInt8](repeating: 7, count: 32))
        let sealed = try #require(again.seal([1, 2, 3]))
        let reader = NoiseCipher(key: [UInt8](repeating: 7, count: 32))
        #expect(reader.open(sealed[...]) == [1, 2, 3])
        #expect(reader.open(sealed[...]) == nil)
        #expect(answer.receiving.open(sealed[...]) == nil)
    }
}
