// The token file, which stores no token in plain text.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct TokenFileTests {
    private let folder = TemporaryFolder()

    private func verify(_ receiver: ReceiverProcess, _ token: String) throws -> Int? {
        let client = try RawClient(receiver)
        client.send(
            "POST /api/device/verify HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\nContent-Length: 0\r\n\r\n"
        )
        return client.answer()?.status
    }

    @Test func tokensInTheClear_becomeDigests_andStayGood() throws {
        let text = "# site 1\nfirst-secret\n\n  second#secret dev-2 # the gate\r\n#none x\n"
        let file = try folder.write(text, to: "tokens", mode: 0o640)
        let receiver = try ReceiverProcess(["--tokens", file])
        let hashed = try folder.read("tokens")
        #expect(!hashed.contains("secret"))
        #expect(hashed.contains("# site 1\nsha256:"))
        #expect(hashed.contains(" dev-2 # the gate"))
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o640)
        for (token, status) in [
            ("first-secret", 200), ("second#secret", 200), ("first", 401), ("#none", 401),
            ("", 401),
        ] {
            #expect(try verify(receiver, token) == status, "\(token)")
        }
        // A digest is not a token.
        let digest = hashed.split(whereSeparator: \.isWhitespace).first { $0.hasPrefix("sha256:") }
        #expect(try verify(receiver, String(try #require(digest))) == 401)
        #expect(receiver.terminate() == 0)
        // A new one is added by hand.
        try folder.write(hashed + "third-secret\n", to: "tokens", mode: 0o640)
        try receiver.start()
        #expect(try verify(receiver, "first-secret") == 200)
        #expect(try verify(receiver, "third-secret") == 200)
        #expect(try !folder.read("tokens").contains("secret"))
    }

    @Test func fileThatCannotBeReplaced_isReadAllTheSame() throws {
        // There is no room for a temporary name.
        let name = String(repeating: "t", count: 250)
        let file = try folder.write("a-secret\n", to: name)
        let receiver = try ReceiverProcess(["--tokens", file])
        #expect(try verify(receiver, "a-secret") == 200)
        #expect(try folder.read(name) == "a-secret\n")
    }
}
