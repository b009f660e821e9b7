// An editor sets up a device from the page.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerPages

@Suite struct NewDeviceTests {
    private let receiver: ReceiverProcess
    private let editor: PageClient

    init() throws {
        receiver = try ReceiverProcess()
        editor = try PageClient(receiver, viewer: "eva", role: "editor")
        editor.extra = "X-Forwarded-Proto: https\r\n"
    }

    private func code(in html: String) throws -> String {
        String(try #require(html.firstMatch(of: /<b>([0-9A-Z]{4}(?:-[0-9A-Z]{4}){3})<\/b>/)).1)
    }

    @Test func code_isShownOnce_andEnrolsTheDeviceWithItsNames() throws {
        #expect(try editor.get("/").body.contains(#"href="/devices/new""#))
        let form = try editor.get("/devices/new").body
        #expect(form.contains("stops accepting unknown tokens"))
        let made = try editor.request("POST", "/devices/new", "label=Hut+%3C1%3E&group=alps&days=3")
        #expect(made.status == 200 && made.header.contains("Cache-Control: no-store"))
        let code = try code(in: made.body)
        let command = "sudo waypost enroll --endpoint https://r/api/ingest --code \(code)"
        #expect(made.body.contains("<pre>\(command)</pre>"))
        #expect(made.body.contains(#"role="img" aria-label="QR code of the command""#))
        #expect(made.body.contains("[upload]\nendpoint = &quot;https://r/api/ingest&quot;\n"))
        let file = "code=\(code)&file="
        let secret = try editor.request("POST", "/devices/new", file + "code")
        #expect(secret.body == code + "\n")
        #expect(
            secret.header.contains("Content-Disposition: attachment; filename=\"waypost.code\"")
        )
        #expect(secret.header.contains("Cache-Control: no-store"))
        let toml = try editor.request("POST", "/devices/new", file + "toml").body
        #expect(toml == "[upload]\nendpoint = \"https://r/api/ingest\"\ninterval = \"5m\"\n")

        let waiting = try editor.get("/devices/new/1")
        #expect(waiting.header.contains("Refresh: 5"))
        #expect(waiting.body.contains("Waiting for the device to use its code"))
        #expect(!waiting.body.contains(code))
        let token = try receiver.enrol("d9", code: code)
        #expect(try editor.get("/devices/new/1").header.contains("Location: /device/d9\r\n"))
        let enrolled = try editor.get("/device/d9").body
        #expect(enrolled.contains("<h1>Hut &lt;1&gt; ") && enrolled.contains("d9 · alps"))
        #expect(enrolled.contains(#"id="live""#) && enrolled.contains("waiting for its first data"))
        #expect(try receiver.send(token, device: "d9", time: RawRequest.time()) == 200)
        #expect(try editor.get("/device/d9").body.contains(">healthy</span>"))
        #expect(try receiver.command("codes", "list").output == "1  used by d9\n")
    }

    @Test func settingUp_isForEditors_andForFormsOfThisSite() throws {
        let viewer = try PageClient(receiver, viewer: "anna")
        #expect(try !viewer.get("/").body.contains("/devices/new"))
        #expect(try viewer.get("/devices/new").status == 403)
        #expect(try viewer.get("/devices/new/1").status == 403)
        #expect(try viewer.request("POST", "/devices/new", "days=7").status == 403)
        editor.extra = "Origin: https://evil.example\r\n"
        #expect(try editor.request("POST", "/devices/new", "days=7").status == 403)
        editor.extra = ""
        for (form, words) in [
            ("label=x&days=0", "a code is valid for 1 to 366 days"), ("label=x", "1 to 366"),
            ("days=7&label=a%0Ab", "the label has a line end"),
        ] {
            let answer = try editor.request("POST", "/devices/new", form)
            #expect(answer.status == 422 && answer.body.contains("Not saved: "))
            #expect(answer.body.contains(words))
        }
        #expect(try editor.get("/devices/new/1").status == 404)
        #expect(try receiver.command("codes", "list").output == "")
    }

    @Test func deviceWithNames_keepsThem() throws {
        #expect(try receiver.send(device: "d1") == 200)
        #expect(try receiver.command("label", "device", "d1", "--label", "Old").status == 0)
        let made = try editor.request("POST", "/devices/new", "label=New&days=7").body
        try receiver.enrol("d1", code: code(in: made))
        #expect(try editor.get("/device/d1").body.contains("<h1>Old"))
    }

    /// A plain address is written so that a gateway accepts it.
    @Test func addressWithoutTLS_isAllowedInWords() throws {
        editor.extra = ""
        let made = try editor.request("POST", "/devices/new", "days=7").body
        #expect(made.contains("--endpoint http://r/api/ingest --allow-plaintext --code"))
        #expect(made.contains("allow_plaintext = true"))
    }

    @Test func picture_hasThePatternsOfAQRCode() throws {
        var html = HTML()
        try #require(QRCode("sudo waypost enroll")).draw(&html, label: "x")
        let text = String(decoding: html.bytes, as: UTF8.self)
        // The upper edge of the first finder, and the light line below it.
        #expect(text.contains(#"d="M0 0h1v1h-1zM1 0h1"#) && text.contains("M6 6h1"))
        #expect(!text.contains("M3 7h1") && !text.contains("M7 0h1"))
        #expect(QRCode(String(repeating: "x", count: 5000)) == nil)
    }
}
