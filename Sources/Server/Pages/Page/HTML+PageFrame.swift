// The common parts of all pages: HTTP headers, page head, navigation.
import Host
package import ServerBase
import ServerIndex
import ServerWeb

extension HTTPAnswer {
    /// Answers with a page that loads nothing from other servers but map tiles, and is not cached.
    package init(_ status: Int = 200, page: HTML, tiles: TilesURL? = nil) {
        self.init(status, page, referrer: "same-origin", tiles)
    }

    /// Answers with a login page, whose address may have a link's secret: no other request gets it.
    ///
    /// Not `no-referrer`: browsers would then send the form with `Origin: null`.
    package init(_ status: Int = 200, logIn page: HTML) {
        self.init(status, page, referrer: "strict-origin")
    }

    private init(_ status: Int, _ page: HTML, referrer: String, _ tiles: TilesURL? = nil) {
        self.init(status, type: "text/html; charset=utf-8", page.bytes)
        headers += [
            ("Content-Security-Policy", Self.policy(tiles)), ("Cache-Control", "no-store"),
            ("Referrer-Policy", referrer), ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ]
    }

    private static func policy(_ tiles: TilesURL?) -> String {
        let images = tiles.map { " \($0.origin)" } ?? ""
        return
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'\(images); media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    }

    /// Answers with bytes of a type that browsers must not reinterpret.
    package init(_ status: Int, type: String, _ bytes: [UInt8], cache: String? = nil) {
        self.init(status, body: bytes)
        headers = [("Content-Type", type), ("X-Content-Type-Options", "nosniff")]
        if let cache { headers.append(("Cache-Control", cache)) }
    }

    /// Answers with a file to save under a name, which has no character that a header would not carry.
    package init(download name: String, type: String, _ bytes: [UInt8]) {
        self.init(200, type: type, bytes, cache: "no-store")
        headers.append(("Content-Disposition", "attachment; filename=\"\(name)\""))
    }

    /// Redirects to `path`.
    package init(seeOther path: String) {
        self.init(303, body: [])
        headers = [("Location", path), ("Cache-Control", "no-store")]
    }
}

extension HTTPAnswer {
    /// The largest file sent at once, in bytes; larger ones need range requests.
    private static let largestFile = 32 << 20
    /// The largest part of one answer, in bytes; clients request the rest.
    private static let largestPart = 4 << 20

    /// Answers with an audio file, or the requested part of it.
    package init(soundFile path: String, _ range: String?) throws {
        guard let file = try LineFile.open(path) else {
            throw HTTPError(status: 404, reason: "this audio file no longer exists")
        }
        let count = Int(try file.size())
        let type = AudioChunk.type(path.split(separator: ".").last.map(String.init) ?? "") ?? ""
        let fields = [("Accept-Ranges", "bytes"), ("Cache-Control", "private, max-age=3600")]
        guard let part = ByteRange.read(range, count: count) else {
            guard count <= Self.largestFile else {
                throw HTTPError(status: 413, reason: "too large for one answer: use ranges")
            }
            self.init(200, type: type, try file.read(count, at: 0))
            headers += fields
            return
        }
        guard !part.isEmpty else {
            self.init(416, body: [])
            headers = [("Content-Range", "bytes */\(count)")]
            return
        }
        let bytes = try file.read(min(part.count, Self.largestPart), at: Int64(part.lowerBound))
        self.init(206, type: type, bytes)
        let last = part.lowerBound + bytes.count - 1
        headers += fields + [("Content-Range", "bytes \(part.lowerBound)-\(last)/\(count)")]
    }
}

extension HTML {
    /// Makes a whole page.
    ///
    /// `now`: milliseconds since 1970, nil if nobody is logged in; `isLive`: a script keeps it up
    /// to date, any other page is a snapshot; `files`: what this page loads besides; `zone`: that of
    /// its times, `isOpen`: the script may go on to the browser's.
    package static func page(
        _ title: String,
        now: Int64?,
        isLive: Bool = false,
        loads files: [PageFile] = [],
        zone: TimeZoneRules? = nil,
        isOpen: Bool = false,
        _ body: (inout HTML) -> Void
    ) -> HTML {
        var html = HTML()
        html.zone = zone
        html.raw("<!doctype html>")
        var root: [HTML.Attribute] = [("lang", "en")]
        if let zone { root.append(("data-zone", zone.name)) }
        if isOpen { root.append(("data-open", "")) }
        html.open("html", root)
        html.raw(
            """
            <head><meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            """
        )
        // Before the page's own style sheet, which changes their colours.
        for case .sheet(let address) in files { html.sheet(address) }
        html.raw(#"<link rel="stylesheet" href="/style.css"><link rel="icon" href="/icon.svg">"#)
        html.element("title", title)
        for case .script(let address) in [.script("/live.js")] + files { html.script(address) }
        html.raw("</head><body>")
        if let now {
            html.raw(
                """
                <a class="skip" href="#main">To the content</a><header><a class="home" href="/">Waypost fleet</a><a href="/beacons">Beacons</a>
                """
            )
            let at: [HTML.Attribute] = [
                ("class", "time"), ("datetime", WallTime(milliseconds: now).rfc3339),
            ]
            html.element("span", [("class", "now soft")]) { html in
                html.text("as of ")
                html.element("time", at, html.words(now))
            }
            // The script of a live page replaces it.
            let mark: [HTML.Attribute] = [("class", "soft"), ("role", "status")]
            html.element("span", (isLive ? [("id", "live")] : []) + mark, "reload for newer")
            html.raw(
                """
                <form method="post" action="/logout"><button>Log out</button></form></header>
                """
            )
        }
        html.element("main", [("id", "main")], body)
        html.raw("</body></html>")
        return html
    }

    private mutating func sheet(_ address: StaticString) {
        raw(#"<link rel="stylesheet" href=""#)
        raw(address)
        raw(#"">"#)
    }

    private mutating func script(_ address: StaticString) {
        raw(#"<script src=""#)
        raw(address)
        raw(#"" defer></script>"#)
    }

    /// Makes the page of a refused request, with the way back.
    package static func refusal(_ refusal: HTTPError, now: Int64?) -> HTML {
        let title = refusal.status == 404 ? "There is no such page" : "This did not work"
        return page("\(title) – Waypost fleet", now: now) { html in
            html.element("h1", title)
            if !refusal.reason.hasPrefix("no such") { html.element("p", refusal.reason) }
            html.raw(#"<p><a href="/">All devices</a></p>"#)
        }
    }

    /// Adds a warning about the data, if there is one.
    package mutating func note(_ note: String?) {
        if let note { element("p", [("class", "wrong"), ("role", "status")], note) }
    }

    /// Adds a heading with links: the device, the day, and the part of the day.
    mutating func heading(
        _ device: String,
        _ day: Day,
        label: String? = nil,
        zone: TimeZoneRules? = nil,
        part: (inout HTML) -> Void
    ) {
        element("h1") { html in
            html.element("a", [("href", "/device/\(device)")], label ?? device)
            // A day without a zone is one of UTC also where the times beside it are local.
            html.text(zone == nil ? ", UTC day " : ", ")
            let query = "?zone=\(FormField.written((zone ?? .utc).name))"
            let link: [HTML.Attribute] = [("href", "/device/\(device)/\(day.name)\(query)")]
            html.element("a", link, zone == nil ? day.name : day.title)
            html.text(", ")
            part(&html)
            guard label != nil else { return }
            html.text(" ")
            html.element("span", [("class", "under")], device)
        }
    }

    /// Adds a time, in a machine-readable and a readable form.
    package mutating func time(_ milliseconds: Int64, seconds: Bool = false) {
        let (machine, zone) = (WallTime(milliseconds: milliseconds).rfc3339, zone ?? .utc)
        let words = seconds ? zone.second(milliseconds) : zone.minute(milliseconds)
        element("time", [("datetime", machine)], words)
    }

    /// Formats a time with its zone: `2026-11-22 16:20:05 UTC`.
    func words(_ milliseconds: Int64) -> String {
        let zone = zone ?? .utc
        return "\(zone.second(milliseconds)) \(zone.title)"
    }

    /// Makes the page of a login link: one button, so that a preview of the link does not use it up.
    static func logIn(once secret: String) -> HTML {
        page("Log in – Waypost fleet", now: nil) { html in
            html.raw(#"<form class="login" method="post" action="/login"><h1>Waypost fleet</h1>"#)
            html.open(
                "input",
                [("type", "hidden"), ("name", "once"), ("value", String(secret.prefix(128)))]
            )
            html.raw("<p>This link logs in one browser, once.</p><button>Log in</button></form>")
        }
    }

    /// Makes the login form.
    static func logIn(wrong: String? = nil) -> HTML {
        page("Log in – Waypost fleet", now: nil) { html in
            html.raw(#"<form class="login" method="post" action="/login"><h1>Waypost fleet</h1>"#)
            if let wrong { html.element("p", [("class", "wrong"), ("role", "alert")], wrong) }
            html.raw(
                """
                <input name="username" autocomplete="username" value="viewer" hidden><label for="token">Your viewer’s token</label>
                <input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
                <button>Log in</button><p class="soft">No token? The person who runs this server makes you a login link
                there: <code>waypost-receiver viewers link NAME --url ADDRESS</code>; for somebody new
                <code>viewers add NAME --link ADDRESS</code>. ADDRESS is that of this page, without <code>/login</code>.</p></form>
                """
            )
        }
    }
}
