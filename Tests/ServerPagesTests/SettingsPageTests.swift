// The form of a device's settings, and the settings and the report on its pages.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct SettingsPageTests {
    private static let address = "/device/d1/settings"

    private let receiver: ReceiverProcess
    private let token: String
    private let editor: PageClient

    init() throws {
        receiver = try ReceiverProcess()
        token = try receiver.enrol()
        editor = try PageClient(receiver, viewer: "eva", role: "editor")
    }

    /// Sends the form, `version` as its page had it.
    private func save(_ text: String, version: Int, by browser: PageClient? = nil) throws
        -> RawClient.Answer
    {
        let written = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let form = "version=\(version)&text=\(written)"
        return try (browser ?? editor).request("POST", Self.address, form)
    }

    private func jobs() throws -> [[String: Any]] {
        let answer = try receiver.request(
            "GET /api/device/jobs HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\n\r\n"
        )
        let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        return (object as? [String: Any])?["jobs"] as? [[String: Any]] ?? []
    }

    /// Sends one reply of `d1`.
    private func reply(_ members: [String: Any]) throws {
        let fixed = ["id": UUID().uuidString, "timestamp": "2026-11-21T04:30:07.123Z"]
        let body: [String: Any] = [
            "stream_name": "waypost_replies", "device_id": "d1",
            "data": [members.merging(fixed) { $1 }], "batch_metadata": ["total_records": 1],
        ]
        let bytes = Array(try JSONSerialization.data(withJSONObject: body))
        let answer = try receiver.request(RawRequest.head(length: bytes.count, token: token), bytes)
        #expect(answer.status == 200, "\(answer.body)")
    }

    @Test func editor_givesVersions_andSeesTheirState() throws {
        let device = try editor.get("/device/d1").body
        #expect(device.contains("href=\"\(Self.address)\"") && !device.contains("Settings wanted"))
        let form = try editor.get(Self.address).body
        #expect(form.contains("name=\"version\" value=\"0\""))
        #expect(form.contains("autocomplete=\"off\">\n</textarea>"), "\(form)")
        // A browser sends CRLF, and drops the first of two line feeds behind the tag.
        let saved = try save("\r\n[audio]\r\n\tbitrate = 32000\r\n", version: 0)
        #expect(saved.status == 303 && saved.header.contains("Location: /device/d1\r\n"))
        let offered = try #require(try jobs().first)
        #expect(offered["text"] as? String == "\n[audio]\n\tbitrate = 32000\n")
        #expect(offered["version"] as? Int == 1)
        let waiting = try editor.get("/device/d1").body
        #expect(waiting.contains("<dt>Settings wanted</dt><dd>version 1, waiting since <time"))
        #expect(waiting.contains("<dt>Settings in force</dt><dd>the device&#39;s own file alone"))
        let again = try editor.get(Self.address).body
        #expect(again.contains(">\n\n[audio]\n\tbitrate = 32000\n</textarea>"), "\(again)")
        let job = try #require(offered["id"] as? String)
        try reply(["job": job, "kind": "settings", "state": "kept", "version": 1])
        #expect(try save("", version: 1).status == 303)
        let next = try #require(try jobs().first?["id"] as? String)
        try reply([
            "job": next, "kind": "settings", "state": "rolled_back", "version": 2,
            "message": "<b>no sync",
        ])
        for viewer in [editor, try PageClient(receiver, viewer: "vic")] {
            let page = try viewer.get("/device/d1").body
            #expect(page.contains("<dd>version 2, rolled back at <time"))
            #expect(page.contains("</time>: &lt;b&gt;no sync</dd>"))
            #expect(page.contains("<dt>Settings in force</dt><dd>version 1</dd>"))
            let report = try viewer.get("/device/d1/report").body
            #expect(report.contains("<p>Settings in force: version 1</p>"))
        }
    }

    @Test func form_isForEditors_andForPagesOfThisSite() throws {
        let viewer = try PageClient(receiver, viewer: "vic")
        #expect(try viewer.get(Self.address).status == 403)
        #expect(try !viewer.get("/device/d1").body.contains(Self.address))
        #expect(try save("", version: 0, by: viewer).status == 403)
        let stranger = PageClient(receiver)
        for answer in [try stranger.get(Self.address), try save("", version: 0, by: stranger)] {
            #expect(answer.status == 303 && answer.header.contains("Location: /login"))
        }
        editor.extra = "Origin: https://evil.example\r\n"
        #expect(try save("", version: 0).status == 403)
        #expect(try jobs().isEmpty)
        editor.extra = "Origin: http://r\r\n"
        #expect(try save("", version: 0).status == 303)
        #expect(try jobs().count == 1)
        #expect(try editor.get("/device/d9/settings").status == 404)
        #expect(try editor.request("POST", "/device/d9/settings", "version=0&text=").status == 404)
        #expect(try editor.request("PUT", Self.address).status == 405)
    }

    @Test func errors_areNamedByLine_andTheTextIsKept() throws {
        for (text, errors) in [
            ("[audio]\r\nbitrate = True\r\n", ["line 2: True is not a value; write true"]),
            ("a = 1\nb = ", ["line 2: not valid TOML"]),
            (
                "[audio]\ndevice = \"hw:1\"\n[remote]\nallow = []\n",
                ["line 2: audio.device: cannot be set from a server, or is", "line 3: remote: "]
            ),
            ("#\n# \u{1B}[1m", ["line 2: a control or invisible character"]),
            (String(repeating: "#", count: 32_001), ["the text has more than 32000 bytes"]),
        ] {
            let answer = try save(text, version: 0)
            #expect(answer.status == 422)
            for error in errors { #expect(answer.body.contains("<li>\(error)"), "\(answer.body)") }
            let first = text.prefix(4)
            #expect(answer.body.contains("off\">\n\(first)"), "\(answer.body)")
        }
        #expect(try jobs().isEmpty)
        let huge = String(repeating: "\n", count: 100_000)
        #expect(try save(huge, version: 0).status == 413)
    }

    @Test func hostileText_isEscaped() throws {
        let evil = "# </textarea><script>alert(1)</script>\u{202E} 'x' & \"y\"\n"
        let answer = try save(evil, version: 0)
        #expect(answer.status == 422)
        #expect(answer.body.contains("# &lt;/textarea&gt;&lt;script&gt;alert(1)&lt;/script&gt;  "))
        let key = try save("\"<i>\u{202E}\" = 1\n'<u>' = 1", version: 0).body
        #expect(key.contains("<li>line 1: a control or invisible character"))
        let keys = try save("'<u>' = 1", version: 0).body
        #expect(keys.contains("&lt;u&gt;") && keys.contains("cannot be set from a server"))
        for page in [answer.body, key, keys] {
            #expect(!page.contains("<script>alert") && !page.contains("<u>"))
        }
        #expect(try save("# </textarea><script>alert(1)</script>\n", version: 0).status == 303)
        #expect(try !editor.get(Self.address).body.contains("<script>alert"))
    }

    @Test func versionSetMeanwhile_isNotReplacedUnseen() throws {
        #expect(try save("# one\n", version: 0).status == 303)
        for version in [0, 2] {
            let answer = try save("# two\n", version: version)
            #expect(answer.status == 422 && answer.body.contains("version 1 was set while"))
            #expect(answer.body.contains("\n# two\n</textarea>"))
            #expect(answer.body.contains("name=\"version\" value=\"1\""))
        }
        #expect(try jobs().first?["text"] as? String == "# one\n")
        #expect(try save("# two\n", version: 1).status == 303)
        #expect(try jobs().map { $0["version"] as? Int } == [2])
    }

    @Test func printedStatus_isShownAsItCame() throws {
        #expect(try editor.request("POST", "/device/d1/report").status == 303)
        let job = try #require(try jobs().first?["id"] as? String)
        let text = """
            waypost 0.1  healthy  up 2 h

            SOURCE    STATE
            audio     <b>\u{1B}[1m\r\u{202E}

            """
        let status = ["version": "0.1", "state": "healthy"]
        let doctor = ["checks": [["part": "clock", "state": "warning", "what": "is <i>off"]]]
        try reply([
            "job": job, "kind": "report", "state": "done",
            "detail": ["status": status, "text": text, "doctor": doctor],
        ])
        let page = try editor.get("/device/d1/report").body
        let shown = "waypost 0.1  healthy  up 2 h\n\nSOURCE    STATE\naudio     &lt;b&gt; [1m  \n"
        #expect(page.contains(shown), "\(page)")
        #expect(page.contains("\ndoctor: clock warning is &lt;i&gt;off</pre>"), "\(page)")
        let printed = try receiver.command("report", "d1", "--last").output
        #expect(printed.contains("\n\nSOURCE    STATE\naudio     <b> [1m  \n"), "\(printed)")
        #expect(!printed.contains("\u{1B}"))
    }
}
