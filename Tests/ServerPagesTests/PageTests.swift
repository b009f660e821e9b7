// The fleet page, as a browser requests it.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct PageTests {
    private static let event = #","kind":"KIND","source":"SOURCE","detail":{DETAIL}"#

    private func event(_ kind: String, _ source: String, _ detail: String) -> String {
        Self.event.replacingOccurrences(of: "KIND", with: kind)
            .replacingOccurrences(of: "SOURCE", with: source)
            .replacingOccurrences(of: "DETAIL", with: detail)
    }

    // MARK: Access

    @Test func page_isForViewersAlone() throws {
        let receiver = try ReceiverProcess()
        let stranger = PageClient(receiver)
        for path in ["/", "/device/d1", "/login"] {
            let answer = try stranger.get(path)
            #expect(answer.status == 404)
            #expect(answer.body.contains("waypost-receiver viewers add NAME"))
        }
        #expect(try receiver.send(ids: ["a"]) == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        let overview = try browser.get("/")
        #expect(overview.status == 200)
        #expect(overview.body.contains(#"href="/device/d1""#))
        for header in [
            "Content-Security-Policy: default-src 'none'; style-src 'self'",
            "Cache-Control: no-store", "X-Content-Type-Options: nosniff",
            "Content-Type: text/html; charset=utf-8",
        ] { #expect(overview.header.contains(header), "\(header)") }
        for path in ["/", "/device/d1", "/device/none", "/device/d1/events/5/x"] {
            let answer = try stranger.get(path)
            #expect(answer.status == 303)
            #expect(answer.header.contains("Location: /login"))
            #expect(answer.body.isEmpty)
        }
        #expect(try stranger.get("/login").body.contains(#"type="password""#))
        for cookie in ["", "waypost_viewer=", "waypost_viewer=x; waypost_viewer=y", "other=1"] {
            #expect(try PageClient(receiver, cookie: cookie).get("/").status == 303, "\(cookie)")
        }
        #expect(try browser.get("/device/none").status == 404)
        #expect(try browser.get("/device/..%2fx").status == 404)
        #expect(try browser.request("POST", "/").status == 405)
        #expect(try browser.request("DELETE", "/device/d1").status == 405)
        for file in ["/style.css", "/live.js"] { #expect(try stranger.get(file).status == 200) }
    }

    @Test func pageThatIsNone_isAPage_andSaysTheWayBack() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        for path in ["/none", "/device/none", "/device/d1/2020-13-01", "/device/d1/x/y/%3Cb%3E"] {
            let answer = try browser.get(path)
            #expect(answer.status == 404)
            #expect(answer.header.contains("Content-Type: text/html"))
            #expect(answer.header.contains("Content-Security-Policy: default-src 'none'"))
            #expect(answer.body.contains("<h1>There is no such page</h1>"), "\(path)")
            #expect(answer.body.contains(#"<a href="/">All devices</a>"#))
            #expect(answer.body.contains("Log out"))
        }
        // A program gets JSON, a browser without a session a page without the frame.
        let program = PageClient(receiver)
        #expect(try program.get("/none").body.hasPrefix("{\"error\""))
        program.extra = "Accept: text/html,*/*\r\n"
        let page = try program.get("/none")
        #expect(page.status == 404)
        #expect(page.body.contains("There is no such page"))
        #expect(!page.body.contains("Log out"))
        #expect(try browser.get("/api/none").body.hasPrefix("{"))
        let method = try browser.request("DELETE", "/device/d1")
        #expect(method.status == 405)
        #expect(method.header.contains("Allow: GET\r\n"))
    }

    @Test func page_isMarkedAsSnapshot_unlessItsScriptKeepsItLive() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send() == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        for (path, isLive) in [
            ("/", true), ("/device/d1", true), ("/device/d1/2026-11-21", false),
            ("/beacons", false),
            ("/device/d1/events/5/x", false), ("/device/d1/2026-11-21/places", false),
        ] {
            let html = try browser.get(path).body
            #expect(html.contains(#"<time class="time" datetime="20"#), "\(path)")
            #expect(html.contains("as of <time"), "\(path)")
            #expect(html.contains(">reload for newer</span>"), "\(path)")
            #expect(html.contains(#"id="live""#) == isLive, "\(path)")
        }
    }

    @Test func session_survivesRestart_untilLogoutOrViewerRemoval() throws {
        let receiver = try ReceiverProcess()
        let (first, second) = (
            try PageClient(receiver, viewer: "anna"), try PageClient(receiver, viewer: "bert")
        )
        #expect(first.setCookie.contains("; HttpOnly; SameSite=Strict"))
        #expect(!first.setCookie.contains("Secure"))
        #expect(receiver.terminate() == 0)
        for file in try FileManager.default.contentsOfDirectory(atPath: receiver.folder) {
            let data = FileManager.default.contents(atPath: "\(receiver.folder)/\(file)") ?? Data()
            for secret in [first.token, first.session] {
                #expect(data.range(of: Data(secret.utf8)) == nil, "\(file)")
            }
        }
        try receiver.start()
        (first.port, second.port) = (receiver.port, receiver.port)
        #expect(try first.get("/").status == 200)
        let list = try receiver.command("viewers", "list").output
        #expect(list.contains("anna  since 20"))
        #expect(list.contains(", 1 browser logged in"))
        #expect(try first.request("POST", "/logout").status == 303)
        #expect(try first.get("/").status == 303)
        #expect(try second.get("/").status == 200)
        #expect(try receiver.command("viewers", "drop", "bert").status == 0)
        #expect(try second.get("/").status == 303)
        #expect(try second.logIn(second.token) == 403)
        #expect(try receiver.command("viewers", "drop", "bert").status == 1)
        #expect(try receiver.command("viewers", "add", "anna").status == 1)
        #expect(try receiver.command("viewers", "add", "a b").status == 64)
    }

    @Test func sessionThatIsTooOld_isNone_andOldBrowsersGiveWay() throws {
        let receiver = try ReceiverProcess()
        let browsers =
            try [PageClient(receiver, viewer: "anna")]
            + (0..<20).map { _ in PageClient(receiver) }
        for browser in browsers.dropFirst() {
            #expect(try browser.logIn(browsers[0].token) == 303)
        }
        #expect(try browsers[0].get("/").status == 303)
        #expect(try browsers[1].get("/").status == 200)
        try receiver.sql("UPDATE sessions SET ends = 1", in: ".receiver-viewers.sqlite")
        #expect(try browsers[1].get("/").status == 303)
    }

    @Test func guesses_areRateLimitedByAddress() throws {
        let receiver = try ReceiverProcess(["--behind-proxy"])
        let browser = try PageClient(receiver, viewer: "anna")
        let guesser = PageClient(receiver)
        guesser.extra = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n"
        let first = try (0..<10).map { _ in try guesser.logIn("no") }
        #expect(first.allSatisfy { $0 == 403 })
        // One try is allowed now and then.
        try waitUntil("an address that has to wait") { try guesser.logIn("no") == 429 }
        // It is too long to be guessed, and people of the same site have the same address.
        #expect(try guesser.logIn(browser.token) == 303)
        #expect(try guesser.logIn("no") == 429)
        guesser.extra = "X-Forwarded-For: 192.0.2.8\r\nX-Forwarded-Proto: https\r\n"
        #expect(try guesser.logIn(browser.token) == 303)
        #expect(guesser.setCookie.hasSuffix("; Secure"))
        // A browser that came with TLS does not come without it again (RFC 6797).
        #expect(try guesser.get("/").header.contains("Strict-Transport-Security: max-age="))
        #expect(try !browser.get("/").header.contains("Strict-Transport-Security"))
    }

    // MARK: Content

    @Test func overview_hasWhoNeedsAPersonFirst_andWhy() throws {
        let receiver = try ReceiverProcess()
        let now = RawRequest.time()
        #expect(try receiver.send(device: "healthy-1", ids: ["a"]) == 200)
        #expect(try receiver.send(device: "late-1", ids: ["b"]) == 200)
        #expect(try receiver.send(device: "late-2", ids: ["c"]) == 200)
        let full = event("storage_low", "storage", #""level":"critical","free_bytes":2000000"#)
        #expect(try receiver.send(device: "full-1", ids: ["d"], padding: full, time: now) == 200)
        let lost = event("source_lost", "audio", #""reason":"gone""#)
        #expect(try receiver.send(device: "deaf-1", ids: ["e"], padding: lost, time: now) == 200)
        let gap = event("gap", "storage", #""stream":"beacons","records":1240"#)
        #expect(try receiver.send(device: "gap-1", ids: ["f"], padding: gap, time: now) == 200)
        let power =
            #","battery_percent":12,"battery_v":3.71,"pending":77,"latitude":47.5,"longitude":-8.25"#
        #expect(try receiver.send(device: "flat-1", ids: ["g"], padding: power, time: now) == 200)
        #expect(receiver.terminate() == 0)
        // Downtime of the receiver does not count as silence: it heard somebody until an hour ago.
        let hour = 3_600_000
        try receiver.sql(
            "UPDATE devices SET last_seen=last_seen-\(9 * hour) WHERE device='late-1'"
        )
        try receiver.sql(
            "UPDATE devices SET last_seen=last_seen-\(5 * hour) WHERE device='late-2'"
        )
        try receiver.sql("UPDATE devices SET last_seen=last_seen-\(hour)")
        try receiver.start()
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page(with: "1\u{202F}240 lost in the last day")
        let order = ["late-1", "late-2", "deaf-1", "full-1", "flat-1", "gap-1", "healthy-1"]
        let places = order.compactMap {
            html.range(of: #"<th scope="row"><a href="/device/\#($0)""#)
        }
        #expect(places.count == order.count)
        #expect(zip(places, places.dropFirst()).allSatisfy { $0.lowerBound < $1.lowerBound })
        for part in [
            "2 late", "2 critical", "2 degraded", "1 healthy", "silent for 10 h", "silent for 6 h",
            "no storage left", "2.0 MB free", "audio has been lost since", "supply is low",
            "12 %, 3.71 V",
            ">77<", "47.50000, -8.25000", "<svg class=\"map\"",
            "https://www.openstreetmap.org/?mlat=47.50000&amp;mlon=-8.25000",
        ] { #expect(html.contains(part), "\(part)") }
    }

    /// Of a fleet of thousands a browser gets a hundred at a time, those in trouble first.
    @Test func deviceOverview_isPaged_withoutOmissions() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(device: "gw-0", ids: ["a"]) == 200)
        #expect(receiver.terminate() == 0)
        let numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 1100)"
        let columns = "first_seen, last_seen, pauses, version, clock"
        try receiver.sql(
            "\(numbers) INSERT INTO devices SELECT 'gw-'||x, \(columns) FROM devices, n"
        )
        try receiver.start()
        let browser = try PageClient(receiver, viewer: "anna")
        var found: [String] = []
        for page in 1...12 {
            let html = try browser.get("/?q=gw&page=\(page)").body
            #expect(html.contains("Page \(page) of 12"))
            #expect(html.contains("/?page=\(page + 1)&amp;q=gw\"") == (page < 12))
            #expect(html.contains("1101 healthy") || html.contains("1\u{202F}101 healthy"))
            let parts = html.components(separatedBy: #"<th scope="row"><a href="/device/"#)
            let ids = parts.dropFirst().map { String($0.prefix { $0 != "\"" }) }
            #expect(ids.count == (page < 12 ? 100 : 1))
            #expect(html.utf8.count < 100_000)
            found += ids
        }
        #expect(Set(found).count == 1101)
        for page in ["0", "-1", "99999999999999999999", "x"] {
            #expect(try browser.get("/?page=\(page)").body.contains("Page 1 of 12"))
        }
        #expect(try browser.get("/?page=13").body.contains("Page 12 of 12"))
        #expect(try !browser.get("/?q=gw-77").body.contains("Page 1 of"))
    }

    @Test func resolvedProblem_isHidden_andRevokedDeviceIsLast() throws {
        let receiver = try ReceiverProcess()
        let (then, now) = (RawRequest.time(secondsAgo: 600), RawRequest.time())
        for (id, device, part, time) in [
            ("a", "d1", event("source_lost", "audio", ""), then),
            ("b", "d1", event("source_recovered", "audio", #""away_s":3"#), now),
            ("c", "d2", event("source_lost", "beacons", ""), then),
            ("d", "d2", event("started", "gateway", ""), now),
            ("e", "d3", event("source_lost", "audio", ""), now),
        ] {
            #expect(try receiver.send(device: device, ids: [id], padding: part, time: time) == 200)
        }
        #expect(try receiver.command("devices", "revoke", "d3").status == 0)
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d2", with: "started")
        let html = try browser.page(with: "2 healthy")
        #expect(html.contains("1 revoked"))
        #expect(!html.contains("has been lost since"))
    }

    /// Markup in a device's name, values or events is escaped.
    @Test func hostileText_staysText() throws {
        let receiver = try ReceiverProcess()
        let evil = #"<script>alert(1)</script>\"'&\u202e"#
        let detail = event(evil, evil, #""\#(evil)":"\#(evil)","<td>":{"</td>":["</table>"]}"#)
        #expect(try receiver.send(ids: ["a"], padding: detail) == 200)
        let body = RawRequest.batch(["b"], version: "<i>0.9</i>")
        #expect(try receiver.request(RawRequest.head(length: body.count), body).status == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp; "
        let device = try browser.page("/device/d1", with: escaped)
        let overview = try browser.page(with: "&lt;i&gt;0.9&lt;/i&gt;")
        for html in [device, overview] {
            #expect(!html.contains("<script>"))
            #expect(!html.contains("<i>"))
            #expect(!html.contains("\u{202e}"))
        }
        #expect(device.components(separatedBy: escaped).count == 5)
        #expect(device.contains("&lt;td&gt;.&lt;/td&gt;"))
    }

    @Test func events_comeAHundredAPage_withoutOneMissing() throws {
        let receiver = try ReceiverProcess()
        // All at the same time, so that only their ids differ.
        let ids = (0..<250).map { "e\(1000 + $0)" }
        let body = RawRequest.batch(ids, padding: event("gap", "ID", ""), numbersSources: true)
        #expect(try receiver.request(RawRequest.head(length: body.count), body).status == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        var path: String? = "/device/d1"
        _ = try browser.page("/device/d1", with: "e1249-")
        var seen: [String] = []
        var pages = 0
        while let next = path {
            let html = try browser.get(next).body
            seen += html.matches(of: /e1[0-9]{3}-/).map { String($0.output) }
            path = html.firstMatch(of: /href="([^"]+)">Older events/).map { String($0.1) }
            pages += 1
        }
        #expect(pages == 3)
        #expect(seen == ids.reversed().map { $0 + "-" })
    }

    @Test func pageWithoutItsIndex_showsWhatTheArchiveKnows() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a"]) == 200)
        #expect(receiver.terminate() == 0)
        let index = receiver.folder + "/.receiver-index.sqlite"
        for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: index + end) }
        try FileManager.default.createDirectory(atPath: index, withIntermediateDirectories: false)
        try receiver.start()
        let browser = try PageClient(receiver, viewer: "anna")
        for path in ["/", "/device/d1"] {
            let html = try browser.page(path, with: "The index cannot be read")
            #expect(html.contains("d1"))
        }
    }

    /// As `index rebuild` leaves it while it runs, or when killed.
    @Test func halfReadIndex_isReported() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a"]) == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        let words = "Records are still being read"
        #expect(try eventually { try !browser.get("/").body.contains(words) })
        try receiver.sql("PRAGMA application_id=1", in: ".receiver-index.sqlite")
        #expect(try browser.get("/").body.contains(words))
        #expect(try receiver.command("index", "rebuild").status == 0)
        #expect(try !browser.get("/").body.contains(words))
    }
}
