// Signatures: what verifies, and that nothing changed does.
import Host
import Support
import Testing

@testable import Minisign

@Suite struct MinisignSignatureTests {
    private static let algorithms = [MinisignSignature.Algorithm.legacy, .prehashed]

    private let key: MinisignPublicKey
    private let message = Vectors.message

    init() throws { key = try MinisignPublicKey(Vectors.publicKey) }

    /// Throws what parsing and verifying throw.
    private func verify(_ text: String, of message: [UInt8] = Vectors.message) throws(Failure) {
        try key.verify(try MinisignSignature(text), of: message)
    }

    /// Returns the message of the failure; empty if the signature verifies.
    private func failure(_ text: String) -> String {
        do throws(Failure) { try verify(text) } catch { return error.message }
        return ""
    }

    @Test func signaturesOfMinisign_verify() throws {
        try verify(Vectors.prehashed)
        try verify(Vectors.legacy)
        let prehashed = try MinisignSignature(Vectors.prehashed)
        #expect(prehashed.algorithm == .prehashed && prehashed.keyID == key.id)
        #expect(prehashed.trustedComment == "settings 12 für Łódź")
        #expect(prehashed.untrustedComment == "signature from minisign secret key")
        let legacy = try MinisignSignature(Vectors.legacy)
        #expect(legacy.algorithm == .legacy && legacy.trustedComment == "settings 12")
        let other = try MinisignSignature(Vectors.otherSignature)
        try MinisignPublicKey(Vectors.otherPublicKey).verify(other, of: message)
        #expect(other.trustedComment.hasSuffix("\tfile:m\thashed"))
    }

    @Test func text_isTheFile() throws {
        for file in [Vectors.prehashed, Vectors.legacy, Vectors.otherSignature] {
            #expect(try MinisignSignature(file).text == file)
        }
    }

    @Test func lineEnds_ofBothKinds_areAccepted() throws {
        let text = Vectors.prehashed
        try verify(text.replacing("\n", with: "\r\n"))
        try verify(String(text.dropLast()))
        #expect(try MinisignSignature(text.replacing("\n", with: "\r\n")).text == text)
        for other in ["\r", "\r\r\n", "\n\n", " \n", "\u{2028}"] {
            #expect(failure(text.replacing("\n", with: other)) != "")
        }
    }

    @Test func changedMessage_fails() {
        for text in [Vectors.prehashed, Vectors.legacy] {
            for index in message.indices {
                var changed = message
                changed[index] ^= 1 << UInt8(index % 8)
                #expect(throws: Failure.self) { try verify(text, of: changed) }
            }
            for changed in [[], message + [0], Array(message.dropLast()), Array(text.utf8)] {
                #expect(throws: Failure.self) { try verify(text, of: changed) }
            }
        }
    }

    @Test(arguments: Self.algorithms)
    func changedByte_ofASignature_fails(_ algorithm: MinisignSignature.Algorithm) {
        let mutation = Mutation(algorithm == .legacy ? Vectors.legacy : Vectors.prehashed)
        // Line 1: algorithm, key id and signature; line 3: the signature of the comment.
        let flips = mutation.flips(1)
        #expect(flips.count == 74 && mutation.flips(3).count == 64)
        for changed in flips[..<2] { #expect(failure(changed).contains("unknown algorithm")) }
        for changed in flips[2..<10] { #expect(failure(changed).contains("not by key \(key.id)")) }
        for changed in flips[10...] { #expect(failure(changed).contains("content was changed")) }
        for changed in mutation.flips(3) { #expect(failure(changed).contains("trusted comment")) }
    }

    @Test(arguments: Self.algorithms)
    func changedByte_ofTheTrustedComment_fails(_ algorithm: MinisignSignature.Algorithm) {
        let mutation = Mutation(algorithm == .legacy ? Vectors.legacy : Vectors.prehashed)
        let line = Array(mutation.lines[2].utf8)
        for index in line.indices {
            var (changed, bytes) = (mutation, line)
            bytes[index] ^= 1 << UInt8(index % 7)
            changed.lines[2] = String(decoding: bytes, as: UTF8.self)
            #expect(failure(changed.text) != "")
            bytes = Array(line[..<index] + line[(index + 1)...])
            changed.lines[2] = String(decoding: bytes, as: UTF8.self)
            #expect(failure(changed.text) != "")
        }
    }

    /// Swift holds these two texts for equal, Ed25519 does not.
    @Test func trustedComment_isComparedByteForByte() {
        let decomposed = Vectors.prehashed.replacing("für", with: "fu\u{308}r")
        #expect(decomposed == Vectors.prehashed)
        #expect(failure(decomposed).contains("trusted comment"))
    }

    @Test func signatureOfAnotherKey_fails_evenUnderThisId() {
        let other = Mutation(Vectors.otherSignature)
        let id = try? MinisignSignature(other.text).keyID.description
        #expect(failure(other.text).contains("is by key \(id ?? "")"))
        let bytes = Array("ED".utf8) + key.id.bytes + Array(other.bytes(1)[10...])
        #expect(failure(other.replacing(1, with: bytes)).contains("content was changed"))
    }

    @Test func halvesOfTwoSignatures_fail() {
        var mixed = Mutation(Vectors.prehashed)
        mixed.lines.replaceSubrange(2...3, with: Mutation(Vectors.legacy).lines[2...3])
        #expect(failure(mixed.text).contains("trusted comment"))
    }

    /// The limitation that `verify` documents.
    @Test func algorithm_isNotSigned() throws {
        let signature = Mutation(Vectors.prehashed)
        let bytes = Array("Ed".utf8) + Array(signature.bytes(1)[2...])
        let relabelled = signature.replacing(1, with: bytes)
        #expect(failure(relabelled).contains("content was changed"))
        try verify(relabelled, of: try blake2b(message))
        #expect(try MinisignSignature(relabelled).algorithm == .legacy)
    }

    @Test func truncatedFile_isRefused() {
        let bytes = Array(Vectors.prehashed.utf8)
        // Without its last line end it is whole.
        for length in 0..<bytes.count - 1 {
            #expect(failure(String(decoding: bytes[..<length], as: UTF8.self)) != "")
        }
    }

    @Test func overlongFile_isRefused() {
        let text = Vectors.prehashed
        #expect(failure(text + "\n").contains("5 lines, not 4"))
        #expect(failure(text + text).contains("8 lines, not 4"))
        let room = MinisignSignature.maxBytes - text.utf8.count
        let more = String(repeating: "x", count: room)
        let long = text.replacing("secret key", with: "secret key\(more)")
        #expect(failure(long) == "" && long.utf8.count == MinisignSignature.maxBytes)
        #expect(failure(long.replacing("xx", with: "xxx", maxReplacements: 1)).contains("at most"))
        let endless = String(repeating: "\n", count: 1_000_000)
        #expect(failure(endless).contains("1000000 bytes; at most 1024"))
    }

    @Test func malformedLines_areNamed() {
        let lines = Mutation(Vectors.prehashed).lines
        let cases: [(Int, String, String)] = [
            (0, "comment: x", "line 1 of the minisign signature does not begin with"),
            (0, "", "line 1"), (0, "untrusted comment: \u{7}", "line 1"),
            (1, lines[3], "line 2 of the minisign signature is not 74 bytes in base64"),
            (1, " " + lines[1], "line 2"), (1, lines[1].replacing("=", with: "A"), "line 2"),
            (1, lines[1].replacing("ws=", with: "wt="), "line 2"), (1, "", "line 2"),
            (2, lines[0], "line 3"), (2, "trusted comment:settings 12 für Łódź", "line 3"),
            (2, "trusted comment: a\u{0}b", "line 3"), (2, "trusted comment: a\rb", "line 3"),
            (2, "trusted comment: a\u{85}b", "line 3"), (2, "trusted comment: \u{2066}", "line 3"),
            (3, lines[1], "line 4 of the minisign signature is not 64 bytes in base64"),
            (3, lines[3] + "=", "line 4"), (3, String(lines[3].dropLast()), "line 4"),
        ]
        for (line, text, reason) in cases {
            var changed = Mutation(Vectors.prehashed)
            changed.lines[line] = text
            let message = failure(changed.text)
            #expect(message.contains(reason), "\(text): \(message)")
        }
    }

    /// No text crashes a parser, and no changed signature verifies.
    @Test func randomChanges_areHarmless() throws {
        var random = SeededRandom(seed: 7)
        let original = try MinisignSignature(Vectors.prehashed)
        for _ in 0..<5000 {
            let text = Mutation.random(Vectors.prehashed, &random)
            guard let signature = try? MinisignSignature(text) else { continue }
            #expect(try MinisignSignature(signature.text).text == signature.text)
            guard (try? key.verify(signature, of: message)) != nil else { continue }
            #expect(signature.globallySigned == original.globallySigned)
            #expect(signature.global == original.global)
        }
        for _ in 0..<5000 {
            _ = try? MinisignPublicKey(Mutation.random(Vectors.publicKey, &random))
            _ = try? MinisignSecretKey(Mutation.random(Vectors.secretKey, &random))
            _ = try? MinisignSecretKey(Mutation.random(Vectors.encryptedKey, &random))
        }
    }
}
