// Public keys: their two forms, and what is refused.
import Host
import Testing

@testable import Minisign

@Suite struct MinisignPublicKeyTests {
    private let line = Mutation(Vectors.publicKey).lines[1]

    @Test func file_andItsLine_areTheSameKey() throws {
        let key = try MinisignPublicKey(Vectors.publicKey)
        #expect(key.id.description == Vectors.id)
        #expect(key.key.count == 32)
        #expect(key.base64 == line)
        for text in [
            line, "\(line)\n", "\(line)\r\n", "untrusted comment: \r\n\(line)",
            "untrusted comment: \t ü\n\(line)\n",
        ] {
            #expect(try MinisignPublicKey(text) == key)
        }
    }

    @Test func otherTexts_areRefused_withTheReason() {
        let start = String(line.dropLast(4))
        let cases: [(String, String)] = [
            ("", "0 lines, not 2"), ("\n", "line 1"), ("\(line)\n\n", "does not begin with"),
            ("\(line)\n\(line)\n", "does not begin with"), (Vectors.prehashed, "4 lines, not 2"),
            (Vectors.publicKey + "\n", "3 lines, not 2"), ("untrusted comment: x\n", "line 1"),
            ("untrusted comment: \u{1B}[2J\n\(line)", "invisible"),
            ("untrusted comment: \u{202E}\n\(line)", "invisible"),
            ("trusted comment: x\n\(line)", "does not begin with"),
            (" \(line)", "base64"), ("\(line) ", "base64"), ("\(line)\r\r", "base64"),
            (start, "base64"), ("\(start)=", "base64"), ("\(start)====", "base64"),
            ("\(start)AA==", "base64"), ("\(start)AAA=", "base64"), ("\(line)AAAA", "base64"),
            ("\(start)A\u{0}AA", "base64"), ("\(start)AA-_", "base64"), ("\(start)ÄÄ", "base64"),
            ("\u{FEFF}\(line)", "base64"), ("RUS" + line.dropFirst(3), "Ed25519"),
            (String(repeating: "x", count: 1025), "at most 1024"),
        ]
        for (text, reason) in cases {
            let message = failure(of: text)
            #expect(message.contains(reason), "\(text): \(message)")
        }
    }

    private func failure(of text: String) -> String {
        do {
            return "no failure, but \(try MinisignPublicKey(text).base64)"
        } catch { return error.message }
    }
}
