// A program sets keys in a file that a person wrote.
import Configuration
import Testing
import Upload

@testable import Daemon
@testable import Field
@testable import Setup

@Suite struct ConfigurationEditTests {
    @Test(arguments: [
        ("", "[upload]\nendpoint = \"X\"\n"),
        ("a = 1\n", "a = 1\n\n[upload]\nendpoint = \"X\"\n"),
        ("a = 1", "a = 1\n\n[upload]\nendpoint = \"X\"\n"),
        (
            "# mine\n[ upload ] # here\ninterval = \"5m\"\n[audio]\n",
            "# mine\n[ upload ] # here\nendpoint = \"X\"\ninterval = \"5m\"\n[audio]\n"
        ),
        (
            "[upload]\n  endpoint= \"old\"\n#endpoint = \"old\"\n",
            "[upload]\nendpoint = \"X\"\n#endpoint = \"old\"\n"
        ),
        ("[upload]\n# endpoint = \"\"\n", "[upload]\nendpoint = \"X\"\n"),
        ("[upload]\r\nendpoint = 1\r\n", "[upload]\r\nendpoint = \"X\"\r\n"),
        ("upload.endpoint = \"old\"\n[audio]\n", "upload.endpoint = \"X\"\n[audio]\n"),
        (
            "upload.interval = \"1m\"\n upload.required=true\r\n[audio]\n",
            "upload.interval = \"1m\"\n upload.required=true\r\nupload.endpoint = \"X\"\r\n[audio]\n"
        ),
        (
            "[upload]\nendpoints = 1\n[audio]\nendpoint = 1\n",
            "[upload]\nendpoint = \"X\"\nendpoints = 1\n[audio]\nendpoint = 1\n"
        ),
    ])
    func key_isSetWhereItStands(before: String, after: String) {
        var edit = ConfigurationEdit(before)
        edit.set("endpoint", to: "X", in: "upload")
        #expect(edit.text == after)
        edit.set("endpoint", to: "X", in: "upload")
        #expect(edit.text == after)
    }

    @Test func fullFile_takesBothKeys() throws {
        var edit = ConfigurationEdit(Configuration.defaultText)
        edit.set("endpoint", to: "https://h/api/ingest", in: "upload")
        edit.set("token_file", to: #"/a "b"\c"#, in: "upload")
        let bytes = Array(edit.text.utf8)
        let upload = try Configuration.check(bytes, file: "f", environment: [:]).values.upload
        #expect(upload.endpoint == "https://h/api/ingest")
        #expect(upload.tokenFile == #"/a "b"\c"#)
    }
}
