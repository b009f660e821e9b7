// Secret keys: their files, passwords, and signatures made with them.
import Host
import Testing

@testable import Minisign

@Suite struct MinisignSecretKeyTests {
    /// Returns the message of the failure; empty if the key can be used.
    private func failure(_ text: String, _ password: [UInt8]? = nil) -> String {
        do throws(Failure) {
            _ = try MinisignSecretKey(text, password: password)
        } catch { return error.message }
        return ""
    }

    /// Returns the encrypted key's file with other limits of scrypt.
    private func encryptedKey(operations: UInt64, memory: UInt64) -> String {
        let file = Mutation(Vectors.encryptedKey)
        var bytes = file.bytes(1)
        bytes.replaceSubrange(38..<54, with: littleEndian(operations) + littleEndian(memory))
        return file.replacing(1, with: bytes)
    }

    @Test func key_signsAsMinisignDoes() throws {
        let key = try MinisignSecretKey(Vectors.secretKey)
        let (publicKey, expected) = (key.publicKey, try MinisignPublicKey(Vectors.publicKey))
        #expect(publicKey == expected)
        let signature = try key.sign(Vectors.message, trustedComment: "settings 12 für Łódź")
        // Ed25519 gives the same signature each time; only the untrusted comment is ours.
        let (ours, theirs) = (Mutation(signature.text).lines, Mutation(Vectors.prehashed).lines)
        #expect(ours.dropFirst() == theirs.dropFirst())
        #expect(ours[0] == "untrusted comment: signature by minisign key \(Vectors.id)")
        try publicKey.verify(try MinisignSignature(signature.text), of: Vectors.message)
    }

    @Test(arguments: [0, 1, 63, 64, 127, 128, 129, 100_000])
    func messageOfAnyLength_isSigned(_ count: Int) throws {
        let key = try MinisignSecretKey(Vectors.secretKey)
        let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for comment in ["", "a\tb", "  spaces  ", "→"] {
            let signature = try key.sign(message, trustedComment: comment)
            let read = try MinisignSignature(signature.text)
            #expect(read.trustedComment == comment && read.text == signature.text)
            try key.publicKey.verify(read, of: message)
            let publicKey = key.publicKey
            #expect(throws: Failure.self) { try publicKey.verify(read, of: message + [0]) }
        }
    }

    @Test func trustedComment_isOneVisibleLine() throws {
        let key = try MinisignSecretKey(Vectors.secretKey)
        for comment in ["a\nb", "\r", "\u{0}", "\u{1B}[2J", "\u{202E}txt.", "\u{2028}", "\u{85}"] {
            do {
                _ = try key.sign([], trustedComment: comment)
                Issue.record("signed: \(hex(comment.utf8))")
            } catch { #expect(error.message.contains("invisible")) }
        }
    }

    @Test func trustedComment_fitsIntoASignature() throws {
        let key = try MinisignSecretKey(Vectors.secretKey)
        let empty = try key.sign([], trustedComment: "").text.utf8.count
        let longest = String(repeating: "x", count: MinisignSignature.maxBytes - empty)
        let signature = try key.sign([], trustedComment: longest)
        try key.publicKey.verify(try MinisignSignature(signature.text), of: [])
        do {
            _ = try key.sign([], trustedComment: longest + "é")
            Issue.record("signed")
        } catch { #expect(error.message.contains("2 bytes too long")) }
    }

    @Test func encryptedKey_needsItsPassword() throws {
        let key = try MinisignSecretKey(Vectors.encryptedKey, password: Vectors.password)
        let (publicKey, expected) = (key.publicKey, try MinisignPublicKey(Vectors.otherPublicKey))
        #expect(publicKey == expected)
        let comment = try MinisignSignature(Vectors.otherSignature).trustedComment
        let signature = try key.sign(Vectors.message, trustedComment: comment)
        let theirs = Mutation(Vectors.otherSignature).lines
        #expect(Mutation(signature.text).lines.dropFirst() == theirs.dropFirst())

        #expect(failure(Vectors.encryptedKey).contains("give its password"))
        for wrong in [[], Vectors.password + [10], Array(Vectors.password.dropLast()), [0]] {
            #expect(failure(Vectors.encryptedKey, wrong).contains("wrong password"))
        }
        // minisign, too, ignores it.
        #expect(failure(Vectors.secretKey, Vectors.password) == "")
    }

    @Test func damagedKey_isRefused() {
        let flips = Mutation(Vectors.secretKey).flips(1)
        for (index, text) in flips.enumerated() {
            switch index {
            case 0..<2, 4..<6: #expect(failure(text).contains("not an Ed25519 key"))
            case 2..<4: #expect(failure(text).contains("not with scrypt"))
            case 62..<126: #expect(failure(text).contains("damaged"))
            // Salt, limits and checksum, which minisign leaves empty, and the key id.
            default: #expect(failure(text) == "")
            }
        }
        let encrypted = Mutation(Vectors.encryptedKey).flips(1)
        for index in [6, 37, 62, 93, 94, 125] {
            #expect(failure(encrypted[index], Vectors.password).contains("wrong password"))
        }
    }

    @Test func otherTexts_areRefused() {
        let key = Mutation(Vectors.secretKey)
        let bytes = key.bytes(1)
        let line = "line 2 of the minisign secret key is not 158 bytes in base64"
        let cases: [(String, String)] = [
            ("", "0 lines, not 2"), (key.lines[1], "1 lines, not 2"),
            (Vectors.secretKey + "\n", "3 lines, not 2"), (Vectors.publicKey, line),
            (key.replacing(1, with: bytes + [0]), line), (key.replacing(1, with: []), line),
            (key.replacing(1, with: Array(bytes.dropLast())), line),
            (String(repeating: "A", count: 2000), "at most 1024"),
            (Vectors.secretKey.replacing("untrusted", with: "trusted"), "does not begin with"),
        ]
        for (text, reason) in cases {
            let message = failure(text)
            #expect(message.contains(reason), "\(text): \(message)")
        }
    }

    @Test func hostileCost_isRefusedBeforeItIsPaid() {
        let (operations, memory) = (ScryptCost.operations, ScryptCost.memory)
        for text in [
            encryptedKey(operations: .max, memory: memory.lowerBound),
            encryptedKey(operations: operations.upperBound + 1, memory: memory.upperBound),
            encryptedKey(operations: operations.upperBound, memory: memory.upperBound + 1),
            encryptedKey(operations: operations.lowerBound - 1, memory: memory.lowerBound),
            encryptedKey(operations: operations.upperBound, memory: memory.lowerBound - 1),
            encryptedKey(operations: 0, memory: 0), encryptedKey(operations: 0, memory: .max),
            encryptedKey(operations: .max, memory: .max),
        ] {
            #expect(failure(text, []).contains("which minisign does not use"))
        }
        // The least that is allowed is another cost than the key's.
        let cheap = encryptedKey(operations: operations.lowerBound, memory: memory.lowerBound)
        #expect(failure(cheap, Vectors.password).contains("wrong password"))
    }

    @Test func cost_isThatOfLibsodium() throws {
        let cases: [(UInt64, UInt64, UInt64, UInt64)] = [
            // The limits of `minisign -G`, and those after it has halved them to 32 MiB.
            (33_554_432, 1_073_741_824, 1 << 20, 1), (1_048_576, 33_554_432, 1 << 15, 1),
            // libsodium's interactive limits; few operations; much time and little memory.
            (524_288, 16_777_216, 1 << 14, 1), (32_768, 1_073_741_824, 1 << 10, 1),
            (33_554_432, 16_777_216, 1 << 14, 64), (3_000_000, 100_000_000, 1 << 16, 1),
            (5_000_000, 50_000_000, 1 << 15, 4),
        ]
        for (operations, memory, n, p) in cases {
            let cost = try ScryptCost(operations: operations, memory: memory)
            #expect(cost.n == n && cost.p == p, "\(operations) \(memory): \(cost)")
        }
    }
}
