// The token file, which stays as it is, and its copy without tokens.
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

    @Test func tokensStayInTheFile_andAreDigestsInItsCopy() throws {
        let text = "# site 1\nfirst-secret\n\n  second#secret dev-2 # the gate\r\n#none x\n"
        let file = try folder.write(text, to: "tokens", mode: 0o640)
        let receiver = try ReceiverProcess(["--tokens", file])
        #expect(try folder.read("tokens") == text)
        let copy = receiver.folder + "/.receiver-tokens"
        let hashed = try String(contentsOfFile: copy, encoding: .utf8)
        #expect(!hashed.contains("secret"))
        #expect(hashed.hasPrefix("# \(file)\n# site 1\nsha256:"))
        let mode = try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions]
        #expect(mode as? Int == 0o600)
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
        // A changed file counts from the next start on, also with digests in it.
        try folder.write("\(try #require(digest))\nthird-secret\n", to: "tokens")
        try receiver.start()
        #expect(try verify(receiver, "first-secret") == 200)
        #expect(try verify(receiver, "second#secret") == 401)
        #expect(try verify(receiver, "third-secret") == 200)
    }

    @Test func tokensOfDeletedFile_stayValid_onlyForThatFile() throws {
        let file = try folder.write("a-secret\n", to: "tokens")
        let receiver = try ReceiverProcess(["--tokens", file])
        #expect(receiver.terminate() == 0)
        try FileManager.default.removeItem(atPath: file)
        try receiver.start()
        #expect(try verify(receiver, "a-secret") == 200)
        #expect(try verify(receiver, "other") == 401)
        #expect(receiver.terminate() == 0)
        let other = try Process.run(
            Tree.program("waypost-receiver"),
            ["--data", receiver.folder, "--tokens", folder.path + "/typo"]
        )
        #expect(other.status == 78)
        #expect(other.error.contains("--tokens \(folder.path)/typo cannot be read"))
    }
}
