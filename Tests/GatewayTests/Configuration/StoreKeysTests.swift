// The keys of an object store: both file formats, permissions, and no key in an error.
import Foundation
import Host
import HTTP
import Support
import Testing

import Daemon

@Suite struct StoreKeysTests {
    private let scratch: TemporaryFolder

    init() throws {
        scratch = TemporaryFolder()
    }

    private func message(_ file: String?, _ environment: [String: String] = [:]) -> String {
        do {
            return "read: " + (try StoreKeys.read(file: file, environment: environment, for: nil))
        } catch {
            return error.message
        }
    }

    @Test(arguments: [
        "AKIA1:5ec/ret+=", "AKIA1:5ec/ret+=\r\n", "# a comment\nAKIA1:5ec/ret+=\n",
        "aws_access_key_id=AKIA1\naws_secret_access_key=5ec/ret+=\n",
        "[default]\r\naws_access_key_id = AKIA1\r\naws_secret_access_key = 5ec/ret+=\r\n",
        "[field]\naws_access_key_id = AKIA1\nregion = x\naws_secret_access_key = 5ec/ret+=",
        "[a]\naws_access_key_id = B\naws_secret_access_key = C\n[default]\n; the one\n"
            + "aws_access_key_id = AKIA1\naws_secret_access_key = 5ec/ret+=",
    ])
    func keys_areReadInBothForms(text: String) throws {
        let path = try scratch.write(text, to: "s3")
        #expect(try StoreKeys.read(file: path, environment: [:], for: nil) == "AKIA1:5ec/ret+=")
    }

    @Test(arguments: [
        ("", "is empty"), ("\n# nothing\n", "is empty"),
        ("5ecret", "holds neither ID:SECRET on one line nor an AWS profile"),
        ("AKIA1:", "holds an empty id or secret"), (":5ecret", "holds an empty id or secret"),
        ("AKIA1:5e cret", "holds a blank, a control character or one beyond ASCII in a key"),
        ("AKIA1:5écret", "holds a blank, a control character or one beyond ASCII in a key"),
        ("AKIA1:a\nAKIA2:5ecret", "holds a line that is not key = value"),
        (
            "aws_access_key_id=AKIA1\naws_secret=5ecret",
            "lacks aws_access_key_id or aws_secret_access_key"
        ),
        (
            "[a]\naws_access_key_id=A\n[b]\naws_secret_access_key=5ecret",
            "holds several profiles and none of them is [default]"
        ),
        (
            "aws_access_key_id=A\naws_secret_access_key=5ecret\naws_session_token=t",
            "holds keys for one session (aws_session_token); a device needs lasting ones"
        ),
    ])
    func keys_areRefused_andNotShown(text: String, problem: String) throws {
        let path = try scratch.write(text, to: "s3")
        let message = message(path)
        #expect(message.hasPrefix("credentials file \(path): \(problem)"), "\(message)")
        #expect(!message.contains("5e") && !message.contains("AKIA"))
    }

    @Test func keys_areRefused_whenOthersMayUseTheFile() throws {
        let path = try scratch.write("AKIA1:5ecret", to: "s3", mode: 0o640)
        #expect(
            message(path)
                == "credentials file \(path): is accessible to other users; run: chmod 600 \(path)"
        )
    }

    @Test func missingKeys_sayWhereToPutThem() {
        let path = "\(scratch.path)/none"
        #expect(
            message(path)
                == "credentials file \(path): No such file or directory; put ID:SECRET there with "
                + "mode 0600"
        )
        #expect(
            message(nil)
                == "no keys for the bucket: set upload.credentials_file, or give the unit the "
                + "credential waypost.s3"
        )
    }

    @Test func credential_isReadWithAnyMode_ifNoFileIsConfigured() throws {
        try scratch.write("AKIA1:5ecret\n", to: "waypost.s3", mode: 0o440)
        let environment = ["CREDENTIALS_DIRECTORY": scratch.path]
        #expect(try StoreKeys.read(file: nil, environment: environment, for: nil) == "AKIA1:5ecret")
    }
}
