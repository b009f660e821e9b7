// Names of devices and beacons, and the search for devices.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct NamesTests {
    private static func written(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    private func label(_ browser: PageClient, _ device: String, _ label: String) throws
        -> RawClient.Answer
    {
        let form = "label=\(Self.written(label))&group=alps&note=key+under+the+stone"
        return try browser.request("POST", "/device/\(device)/names", form)
    }

    @Test func label_ofDevice_isShownWithItsId_andIsText() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "eva", role: "editor")
        let page = try browser.page("/device/d1", with: #"href="/device/d1/names""#)
        #expect(page.contains("<h1>d1</h1>"))
        let evil = #"Hut "1" <script>alert(1)</script> é"#
        let saved = try label(browser, "d1", "  \(evil) ")
        #expect(saved.status == 303)
        #expect(saved.header.contains("Location: /device/d1\r\n"))
        let escaped = "Hut &quot;1&quot; &lt;script&gt;alert(1)&lt;/script&gt; é"
        let device = try browser.get("/device/d1").body
        #expect(device.contains(#"<h1>\#(escaped) <span class="under">d1 · alps</span></h1>"#))
        #expect(device.contains("<p>key under the stone</p>"))
        let overview = try browser.get("/").body
        #expect(overview.contains(#"<a href="/device/d1">\#(escaped)</a>"#))
        let form = try browser.get("/device/d1/names").body
        #expect(form.contains(#"name="label" value="\#(escaped)""#))
        let day = try browser.page("/device/d1/2026-11-21", with: "1 record in")
        #expect(day.contains(#"<a href="/device/d1">\#(escaped)</a>"#))
        for html in [device, overview, form, day] { #expect(!html.contains("<script>alert")) }
        // No file of the records or of the index knows it.
        #expect(receiver.terminate() == 0)
        #expect(try receiver.command("index", "rebuild").status == 0)
        try receiver.start()
        browser.port = receiver.port
        #expect(try browser.get("/device/d1").body.contains(escaped))
    }

    @Test func names_areBounded_andHaveNoControlCharacters() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "eva", role: "editor")
        #expect(try label(browser, "d1", String(repeating: "é", count: 80)).status == 303)
        for (text, words) in [
            (String(repeating: "é", count: 81), "the label has 81 characters; use at most 80"),
            ("a\u{202e}b", "the label has a line end or another control character"),
            ("a\nb", "the label has a line end or another control character"),
        ] {
            let answer = try label(browser, "d1", text)
            #expect(answer.status == 422)
            #expect(answer.body.contains("Not saved: \(words)"))
            // The rest of what was typed is not lost.
            #expect(answer.body.contains(#"value="key under the stone""#))
        }
        #expect(try browser.get("/").body.contains(String(repeating: "é", count: 80)))
        #expect(try label(browser, "none", "x").status == 404)
        #expect(try browser.request("POST", "/beacons", "beacon=&label=x").status == 422)
        #expect(
            try browser.request("POST", "/beacons", "x=" + String(repeating: "y", count: 5000))
                .status == 413
        )
    }

    @Test func naming_isForEditorsAlone_andForFormsOfThisSite() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let viewer = try PageClient(receiver, viewer: "anna")
        #expect(try label(viewer, "d1", "x").status == 403)
        #expect(try viewer.request("POST", "/beacons", "beacon=b&label=x").status == 403)
        #expect(try viewer.get("/device/d1/names").status == 403)
        #expect(try !viewer.get("/device/d1").body.contains("/device/d1/names"))
        #expect(try !viewer.get("/beacons").body.contains("<form class=\"names\""))
        #expect(try label(PageClient(receiver), "d1", "x").status == 303)
        let browser = try PageClient(receiver, viewer: "eva", role: "editor")
        browser.extra = "Origin: https://evil.example\r\n"
        #expect(try label(browser, "d1", "x").status == 403)
        #expect(try browser.request("POST", "/beacons", "beacon=b&label=x").status == 403)
        browser.extra = "Origin: http://r\r\n"
        #expect(try browser.get("/device/d1").body.contains("<h1>d1</h1>"))
        #expect(try label(browser, "d1", "x").status == 303)
    }

    @Test func labelCommand_setsFields_andRunningServerShowsThem() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        func label(_ words: String...) throws -> Outcome {
            try receiver.command(["label"] + words)
        }
        #expect(try label("device", "d1", "--label", "Hut 1", "--group", "alps").status == 0)
        #expect(try browser.get("/").body.contains(">Hut 1</a>"))
        #expect(try label("device", "d1", "--note", "dog").status == 0)
        #expect(try label("device", "d1").output == "label  Hut 1\ngroup  alps\nnote  dog\n")
        #expect(try label("device", "d1", "--label", "").status == 0)
        #expect(try browser.get("/device/d1").body.contains("<h1>d1 <span"))
        let none = try label("device", "d2", "--label", "x")
        #expect(none.status == 1)
        #expect(none.error.contains("no device d2 has sent or enrolled"))
        let id = "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/2"
        #expect(try label("beacon", id, "--label", "Fox 7").status == 0)
        #expect(try label("beacon", id).output == "label  Fox 7\n")
        let bad = try label("beacon", id, "--label", "a\tb")
        #expect(bad.status == 1)
        #expect(bad.error.contains("control character"))
        #expect(try browser.get("/beacons").body.contains("Fox 7"))
        let mode = try FileManager.default.attributesOfItem(
            atPath: "\(receiver.folder)/.receiver-names.sqlite"
        )[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }

    @Test func beacon_isNamedFromItsDay_andFoundByItsLabel() throws {
        let receiver = try ReceiverProcess()
        let day = "2026-11-21"
        let id = "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/2"
        func sighting(_ beacon: String) -> String {
            #""beacon_id":"\#(beacon)","kind":"ibeacon","address":"aa:bb","rssi":-70"#
        }
        let records = (0..<250).map { ($0, members: sighting($0 % 50 == 0 ? id : "other/\($0)")) }
        try receiver.send("linux_bluez_beacons", on: day, records)
        let browser = try PageClient(receiver, viewer: "eva", role: "editor")
        let html = try browser.page("/device/d1/\(day)", with: "<h2>Beacons</h2>")
        let link = try #require(html.firstMatch(of: /href="(\/beacon\/f7826da6[^"#]+)"/)).1
        #expect(try browser.get(String(link)).body.contains(#"name="beacon" value="\#(id)""#))
        let form = "beacon=\(Self.written(id))&label=Fox+7"
        #expect(try browser.request("POST", "/beacons", form).status == 303)
        #expect(
            try browser.get("/device/d1/\(day)").body.contains(
                "<span class=\"under\">\(id)</span></h3>"
            )
        )
        // 25 on each page, none twice and none missing.
        var path: String? = "/device/d1/\(day)/linux_bluez_beacons"
        var seen: [String] = []
        var pages = 0
        while let next = path {
            let html = try browser.get(next).body
            seen += html.matches(of: /<time datetime="2026-11-21T([0-9:]+)\.000Z"/).map {
                String($0.1)
            }
            path = html.firstMatch(of: /href="([^"]+)">Older records/).map {
                $0.1.replacingOccurrences(of: "&amp;", with: "&")
            }
            pages += 1
        }
        let times = (0..<250).map { String(format: "00:%02d:%02d", $0 / 60, $0 % 60) }
        #expect(pages == 10)
        #expect(seen == times.reversed())
        for text in ["fox", id.uppercased()] {
            let found = try browser.get(
                "/device/d1/\(day)/linux_bluez_beacons?beacon=\(Self.written(text))"
            ).body
            #expect(found.components(separatedBy: "<th scope=\"row\">").count == 6)
        }
        let none = try browser.get("/device/d1/\(day)/linux_bluez_beacons?beacon=%3Cb%3E").body
        #expect(none.contains("No such record on this day."))
        #expect(none.contains(#"value="&lt;b&gt;""#))
    }

    @Test func twentyDevices_canBeSearched_byNameGroupAndState() throws {
        let receiver = try ReceiverProcess()
        for number in 1...19 {
            #expect(try receiver.send(device: "d\(number)", ids: ["r\(number)"]) == 200)
        }
        let browser = try PageClient(receiver, viewer: "anna")
        func shown(_ query: String) throws -> [String] {
            try browser.get("/\(query)").body.matches(
                of: /<th scope="row"><a href="\/device\/([^"]+)"/
            )
            .map { String($0.1) }.sorted()
        }
        #expect(try !browser.get("/").body.contains("role=\"search\""))
        #expect(try receiver.send(device: "d20", ids: ["r20"]) == 200)
        #expect(
            try receiver.command("label", "device", "d3", "--label", "Hut 1, North").status == 0
        )
        #expect(
            try receiver.command("label", "device", "d4", "--group", "alps & lakes").status == 0
        )
        #expect(try receiver.command("devices", "revoke", "d5").status == 0)
        let html = try browser.get("/").body
        #expect(html.contains("role=\"search\""))
        #expect(html.contains(#"<option value="alps &amp; lakes">"#))
        #expect(try shown("").count == 20)
        #expect(try shown("?q=north+hut") == ["d3"])
        #expect(try shown("?q=D2") == ["d2", "d20"])
        #expect(try shown("?q=&group=alps+%26+lakes&state=") == ["d4"])
        #expect(try shown("?state=revoked") == ["d5"])
        #expect(try shown("?state=none").count == 20)
        #expect(try browser.get("/?q=%3Cscript%3E").body.contains(#"value="&lt;script&gt;""#))
        #expect(try browser.get("/?q=nothing").body.contains("No device fits this search."))
    }
}
