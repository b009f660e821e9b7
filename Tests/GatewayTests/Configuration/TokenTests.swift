// The token file: permissions, content, and no token in an error.
import Foundation
import Host
import Support
import Testing

import Daemon
import Setup

@Suite struct TokenTests {
    private let scratch: TemporaryFolder

    init() throws {
        scratch = TemporaryFolder()
    }

    private func message(_ file: String?, _ environment: [String: String] = [:]) -> String {
        do {
            return "read: " + (try Token.read(file: file, environment: environment, for: nil))
        } catch {
            return error.message
        }
    }

    @Test(arguments: [
        "abc-DEF_123.~+/=", "abc-DEF_123.~+/=\n", "abc-DEF_123.~+/=\r\n", "abc-DEF_123.~+/= \t\n\n",
    ])
    func token_isReadWithoutTheEndOfTheLine(text: String) throws {
        let path = try scratch.write(text, to: "token")
        #expect(try Token.read(file: path, environment: [:], for: nil) == "abc-DEF_123.~+/=")
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o777])
    func token_isRefused_whenOthersMayUseTheFile(mode: Int) throws {
        let path = try scratch.write("secret", to: "token", mode: mode)
        let text = message(path)
        #expect(text == "token file \(path): is accessible to other users; run: chmod 600 \(path)")
    }

    @Test(arguments: [0o600, 0o400, 0o700])
    func token_isRead_whenOnlyItsOwnerMay(mode: Int) throws {
        let path = try scratch.write("secret", to: "token", mode: mode)
        #expect(try Token.read(file: path, environment: [:], for: nil) == "secret")
    }

    @Test(arguments: ["", "\n", " \r\n"])
    func token_isRefused_whenEmpty(text: String) throws {
        let path = try scratch.write(text, to: "token")
        #expect(message(path) == "token file \(path): is empty")
    }

    @Test(arguments: [
        "se cret", "se\ncret", "se\tcret", "se\u{0}cret", " secret", "sécret", "\u{FEFF}secret",
        "se\u{7F}cret",
    ])
    func token_isRefused_andNotShown_withOtherCharacters(text: String) throws {
        let path = try scratch.write(text, to: "token")
        #expect(
            message(path)
                == "token file \(path): holds a blank, a control character or one beyond ASCII; it "
                + "must hold the token alone"
        )
    }

    @Test func token_isRefused_whenLargerThanAToken() throws {
        let whole = try scratch.write(String(repeating: "s", count: 4096), to: "whole")
        #expect(try Token.read(file: whole, environment: [:], for: nil).count == 4096)
        let path = try scratch.write(String(repeating: "s", count: 4097), to: "token")
        #expect(
            message(path) == "token file \(path): is larger than 4096 bytes, so it holds no token"
        )
    }

    @Test func token_isRefused_whenTheFileIsNoFile() throws {
        #expect(
            message(scratch.path)
                == "token file \(scratch.path): Is a directory; check upload.token_file"
        )
        let pipe = "\(scratch.path)/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(message(pipe) == "token file \(pipe): is not a regular file")
    }

    @Test func token_saysWhichFileIsMissing() {
        let path = "\(scratch.path)/none"
        #expect(
            message(path)
                == "token file \(path): No such file or directory; put the token there with "
                + "mode 0600"
        )
    }

    @Test func credential_isReadWithAnyMode_ifNoFileIsConfigured() throws {
        try scratch.write("fromSystemd\n", to: "waypost.token", mode: 0o440)
        let environment = ["CREDENTIALS_DIRECTORY": scratch.path]
        #expect(try Token.read(file: nil, environment: environment, for: nil) == "fromSystemd")
        let path = "\(scratch.path)/waypost.token"
        #expect(try Token.read(file: path, environment: environment, for: nil) == "fromSystemd")
    }

    @Test func configuredFile_winsOverTheCredential() throws {
        let other = TemporaryFolder()
        try other.write("fromSystemd", to: "waypost.token", mode: 0o440)
        let path = try scratch.write("configured", to: "token")
        let environment = ["CREDENTIALS_DIRECTORY": other.path]
        #expect(try Token.read(file: path, environment: environment, for: nil) == "configured")
        // The exemption is for credentials only.
        let open = try scratch.write("configured", to: "open", mode: 0o644)
        #expect(message(open, environment).hasSuffix("chmod 600 \(open)"))
    }

    @Test func noTokenAtAll_saysWhereToPutOne() {
        // Other credentials of the unit are not used as a token.
        let environment = ["CREDENTIALS_DIRECTORY": scratch.path]
        #expect(message(nil, environment) == message(nil))
        #expect(
            message(nil)
                == "no device token: set upload.token_file, or give the unit the credential "
                + "waypost.token"
        )
    }
}
