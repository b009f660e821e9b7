// The page in Debian's Chromium: phone and desktop, light, dark and printed.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerBase
@testable import ServerPages

@Suite struct BrowserTests {
    private struct Look: Decodable {
        var name: String
        var title: String
        var text: String
        /// Elements that are hard to read or have no accessible name.
        var marks: [String]
        /// The findings of axe-core, if `deploy/test` has installed it.
        var barriers: [String]?
        /// Pixels that are wider than the window.
        var overflow: Int
        /// The first element that the Tab key reaches.
        var tab: String
        /// The length of each audio file in seconds, -1 for one that cannot be played.
        var sounds: [Double]
        /// The console's messages.
        var complaints: [String]
        var addresses: [String]
    }

    private func look(_ browser: PageClient, _ pages: [String: String]) throws -> [Look] {
        let pictures = Tree.path(".build/page")
        try FileManager.default.createDirectory(
            atPath: pictures,
            withIntermediateDirectories: true
        )
        let addresses = pages.map { "\($0)=http://127.0.0.1:\(browser.port)\($1)" }
        let outcome = try Process.run(
            "/usr/bin/python3",
            [Tree.path("Tests/Peers/browser.py"), pictures, browser.session] + addresses
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        return try JSONDecoder().decode([Look].self, from: outcome.data)
    }

    @Test(.enabled(if: Tab.isThere))
    func openPage_changesInItsPlace_andSaysWhenItDoesNot() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(device: "d1") == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        let tab = try Tab(browser, "/")
        let mark = "document.getElementById('live').textContent"
        try tab.waitFor(#""live""#, of: mark)
        _ = try tab.ask("window.same = 7; document.querySelector('th a').focus()")
        let lost = #","kind":"source_lost","source":"audio","detail":{"a":"<script>"}"#
        #expect(try receiver.send(device: "d2", padding: lost, time: RawRequest.time()) == 200)
        try tab.waitFor(#""(1) Waypost fleet""#, of: "document.title")
        // The device in trouble is first, and the keyboard focus stays.
        let devices = "[...document.querySelectorAll('th a')].map(one => one.textContent).join()"
        #expect(try tab.ask(devices) == #""d2,d1""#)
        #expect(try tab.ask("document.activeElement.getAttribute('href')") == #""/device/d1""#)
        #expect(try tab.ask("window.same") == "7")
        // The server's clock was ahead, and was set back.
        _ = try tab.ask("document.querySelector('.time').textContent = '2999-01-01 00:00:00 UTC'")
        #expect(try receiver.send(device: "d3", ids: ["d3"]) == 200)
        try tab.waitFor(#""d2,d1,d3""#, of: devices)
        // A hidden tab does not occupy a live connection.
        func show(_ isHidden: Bool) throws {
            let hide =
                "Object.defineProperty(document, 'hidden', { value: \(isHidden), configurable: true })"
            _ = try tab.ask("\(hide); document.dispatchEvent(new Event('visibilitychange'))")
        }
        try show(true)
        #expect(try tab.ask(mark) == #""""#)
        var others: [RawClient] = []
        try waitUntil("all places") {
            let client = try browser.live(from: "127.0.0.2")
            if client.answer()?.status == 200 { others.append(client) }
            return others.count == 16
        }
        try show(false)
        try tab.waitFor(#""not live""#, of: mark)
        others = []
        try show(true)
        try waitUntil("a place") { try browser.live().answer()?.status == 200 }
        try show(false)
        try tab.waitFor(#""live""#, of: mark)
        #expect(receiver.terminate() == 0)
        try tab.waitFor(#""not live""#, of: mark)
        #expect(try tab.ask(devices) == #""d2,d1,d3""#)
    }

    /// With live updates, which come in UTC.
    @Test(.enabled(if: Tab.isThere))
    func times_areInTheBrowsersZone_andInUTCWhenPointedAt() throws {
        let receiver = try ReceiverProcess()
        let time = "2026-11-21T20:30:07.123Z"
        #expect(try receiver.send(time: time) == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1", with: "2026-11-21 20:30")
        let tab = try Tab(browser, "/device/d1", zone: "Asia/Kathmandu")
        let cell = #"document.querySelector('time[datetime^="2026-11-21T20:30:07"]')"#
        func check() throws {
            try tab.waitFor(#""2026-11-22 02:15""#, of: "\(cell).textContent")
            #expect(try tab.ask("\(cell).title") == #""2026-11-21 20:30 UTC""#)
        }
        try check()
        try receiver.send("weather", on: "2026-11-21", [("04:00:00", #""t":1"#)])
        try tab.waitFor(
            "true",
            of: "document.querySelector('main').textContent.includes('weather')"
        )
        try check()
        let head = try tab.ask("document.querySelector('.time').textContent")
        #expect(head.contains("GMT+5:45"))
        #expect(try tab.ask("document.querySelector('.time').title.endsWith(' UTC')") == "true")
        let records = try Tab(browser, "/device/d1/2026-11-21/places", zone: "Asia/Kathmandu")
        let row = "document.querySelector('tbody th time').textContent"
        try records.waitFor(#""2026-11-22 02:15:07.123""#, of: row)
        let heads = "[...document.querySelectorAll('thead th')].map(one => one.textContent).join()"
        #expect(try records.ask(heads) == #""Time,Record""#)
    }

    /// By dygraphs and leaflet, under the policy of the page.
    @Test(.enabled(if: Tab.isThere && !WebLibraries().plots.isEmpty && !WebLibraries().map.isEmpty))
    func days_areDrawnByTheLibraries() throws {
        let receiver = try ReceiverProcess()
        try receiver.send(
            "weather",
            on: "2026-11-21",
            (0..<60).map { ($0 * 600, #""temperature_c":\#($0)"#) }
        )
        try receiver.send("weather", on: "2026-11-17", [("12:00:00", #""temperature_c":-7"#)])
        try receiver.send(
            "linux_gpsd_location",
            on: "2026-11-21",
            (0..<60).map { ($0 * 60, #""latitude":47.\#(100 + $0),"longitude":8.5"#) }
        )
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/2026-11-21", with: "data-track")
        _ = try browser.page("/device/d1/2026-11-17", with: "data-key")
        let tab = try Tab(browser, "/device/d1/2026-11-21")
        _ = try tab.ask("document.querySelector('figure[data-key]').scrollIntoView()")
        let labels =
            "[...document.querySelectorAll('.graph .dygraph-axis-label')].map(one => one.textContent).join(' ')"
        try tab.waitFor("true", of: "(\(labels)).includes('12:00')")
        #expect(
            try tab.ask("document.querySelector('.dygraph-ylabel').textContent === '°C'") == "true"
        )
        // The grid and the scale, because there are no tiles.
        try tab.waitFor("true", of: "document.querySelectorAll('[data-track] path').length > 3")
        #expect(
            try tab.ask(
                "document.querySelector('.leaflet-control-scale').textContent.endsWith('mi')"
            ) == "true"
        )
        #expect(try tab.ask("document.querySelectorAll('.leaflet-tile').length") == "0")
        // The value under the pointer.
        let figure = "document.querySelector('figure[data-key]')"
        let move = Tab.pointer(["mousemove"], on: figure, x: "width / 3")
        let hover = "\(figure).querySelector('.hover').textContent"
        try tab.waitFor("true", of: "\(move), /2026-11-21 .*: [0-9.]+ °C/.test(\(hover))")
        let week =
            "[...document.querySelectorAll('.ways a')].find(one => one.textContent === 'Week')"
        let path = "/device/d1/2026-11-15..2026-11-21"
        #expect(try tab.ask("\(week).pathname") == "\"\(path)\"")
        let wide = try Tab(browser, path)
        #expect(try wide.ask("\(week).ariaCurrent") == #""page""#)
        _ = try wide.ask("\(figure).scrollIntoView()")
        try wide.waitFor(
            "true",
            of: "(\(labels)).includes('Tue 11-17') && !(\(labels)).includes('12:00')"
        )
    }

    /// The page goes on to the browser's zone once; plots, keys and bars are in it, and so are links.
    @Test(.enabled(if: Tab.isThere && !WebLibraries().plots.isEmpty))
    func days_areInTheBrowsersZone_alsoByKeyboard() throws {
        let receiver = try ReceiverProcess()
        // Midnight in Kathmandu is 18:15 in UTC.
        let records = (0..<6).map { number in
            (66_600 + number * 1200, #""temperature_c":\#(number)"#)
        }
        try receiver.send("weather", on: "2026-11-21", records)
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/2026-11-21", with: "data-key")
        let tab = try Tab(browser, "/device/d1/2026-11-22", zone: "Asia/Kathmandu")
        // Chromium has the name of before 1986.
        try tab.waitFor("true", of: "/^[?]zone=Asia%2FKath?mandu$/.test(location.search)")
        let strip = "document.querySelector('.strip').getAttribute('aria-label')"
        try tab.waitFor(#""6 records in 1.0 h of 24 h""#, of: strip)
        let figure = "document.querySelector('figure[data-key]')"
        let graph = "\(figure).querySelector('.graph')"
        _ = try tab.ask("\(figure).scrollIntoView()")
        let name = "temperature 5 °C 0 °C to 5 °C, mean 2.50 °C"
        try tab.waitFor("true", of: "\(graph).ariaLabel?.includes('\(name)') ?? false")
        #expect(try tab.ask("\(graph).tabIndex === 0 && \(graph).role") == #""img""#)
        let hover = "\(figure).querySelector('output').textContent"
        func press(_ key: String, gives text: String) throws {
            let event = "new KeyboardEvent('keydown', { key: '\(key)', bubbles: true })"
            let isShown = try tab.ask("\(graph).dispatchEvent(\(event)), \(hover) === '\(text)'")
            let found = try tab.ask(hover)
            #expect(isShown == "true", "\(key): \(found)")
        }
        // The middle of the interval of five minutes.
        try press("ArrowRight", gives: "2026-11-22 00:17: 0 °C")
        try press("ArrowRight", gives: "2026-11-22 00:37: 1 °C")
        try press("End", gives: "2026-11-22 01:57: 5 °C")
        try press("ArrowLeft", gives: "2026-11-22 01:37: 4 °C")
        let labels =
            "[...document.querySelectorAll('.graph .dygraph-axis-label')].map(one => one.textContent).join(' ')"
        #expect(try tab.ask("/Sun 11-22 0[36]:00/.test(\(labels))") == "true")
        // The bars begin where midnight is in the plots.
        let edges =
            "(([bars, label]) => Math.round(bars.left - label.left - label.width / 2))(['.strip', '.dygraph-axis-label-x'].map(one => document.querySelector(one).getBoundingClientRect()))"
        #expect(try tab.ask(edges) == "0")
        // The browser's zone is not asked for where the address names another.
        let utc = try Tab(browser, "/device/d1/2026-11-21?zone=UTC", zone: "Asia/Kathmandu")
        #expect(try utc.ask("location.search") == #""?zone=UTC""#)
        let head = "document.querySelector('.time').textContent.endsWith(' UTC')"
        #expect(try utc.ask(head) == "true")
    }

    /// Devices are links on the map, which stays as it is while the page changes below it.
    @Test(.enabled(if: Tab.isThere && !WebLibraries().map.isEmpty))
    func overviewMap_hasTheDevices_andKeepsItsView() throws {
        let receiver = try ReceiverProcess()
        func send(_ device: String, _ latitude: String, _ time: String) throws {
            let place = #","latitude":\#(latitude),"longitude":8.5"#
            #expect(
                try receiver.send(device: device, ids: [device], padding: place, time: time) == 200
            )
        }
        let now = RawRequest.time()
        try send("d1", "47.1", now)
        try send("d2", "47.2", now)
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/", with: "2 devices")
        let tab = try Tab(browser, "/")
        let dots =
            "[...document.querySelectorAll('.leaflet .dot')].map(one => `${one.getAttribute('href')} ${one.textContent} ${one.firstChild.className}`).sort().join()"
        #expect(
            try tab.ask(dots) == #""/device/d1 d1 healthy,/device/d2 d2 healthy""#
        )
        _ = try tab.ask(
            "window.kept = document.querySelector('.leaflet'); document.querySelector('.leaflet-control-zoom-in').click(); document.querySelector('.dot').focus()"
        )
        try tab.waitFor(#""live""#, of: "document.getElementById('live').textContent")
        try send("d3", "47.15", RawRequest.time())
        try tab.waitFor("3", of: "document.querySelectorAll('.leaflet .dot').length")
        #expect(try tab.ask("kept.isConnected && kept.querySelectorAll('.dot').length") == "3")
        #expect(try tab.ask("document.activeElement.className.includes('dot')") == "true")
        _ = try tab.ask("document.querySelector('.dot[href=\"/device/d2\"]').click()")
        try tab.waitFor(#""/device/d2""#, of: "location.pathname")
    }

    @Test(.enabled(if: Tab.isThere))
    func pages_fitEachScreen_areReadable_andAskNobodyElse() throws {
        let receiver = try ReceiverProcess()
        let now = RawRequest.time()
        let evil = #"<img src=http://192.0.2.1/x onerror=alert(1)>"#
        let names = [
            "hut-1", "9f3c2a70-51d4-4c1e-9d3b-aa01bb02cc03", String(repeating: "m", count: 64),
        ]
        for (number, device) in names.enumerated() {
            let place =
                #","latitude":47.\#(number),"longitude":8.\#(number),"battery_percent":\#(number * 30)"#
            let ids = ["p\(number)"]
            #expect(try receiver.send(device: device, ids: ids, padding: place, time: now) == 200)
            let event =
                #","kind":"gap","source":"storage","detail":{"reason":"\#(evil)","records":\#(number)}"#
            let readings =
                #","kind":"ruuvi","address":"\#(device)","rssi":-70,"telemetry":{"temperature_c":2\#(number).5}"#
            let body = RawRequest.batch(
                ["b\(number)"],
                device: device,
                padding: readings,
                time: now
            )
            let beacons = String(decoding: body, as: UTF8.self).replacingOccurrences(
                of: "places",
                with: "beacons"
            )
            let head = RawRequest.head(length: beacons.utf8.count)
            #expect(try receiver.request(head, Array(beacons.utf8)).status == 200)
            let events = ["e\(number)"]
            #expect(
                try receiver.send(device: device, ids: events, padding: event, time: now) == 200
            )
        }
        try SentAudio.send(receiver, [(names[2], 3600, 1.5)], on: String(now.prefix(10)))
        for number in 0..<20 {
            #expect(try receiver.send(device: "more-\(number)", ids: ["m\(number)"]) == 200)
        }
        let label = String(repeating: "Wide label ", count: 7) + "<b>"
        let set = try receiver.command(
            "label",
            "device",
            names[2],
            "--label",
            label,
            "--group",
            "alps",
            "--note",
            evil
        )
        #expect(set.status == 0)
        #expect(try receiver.command("label", "beacon", names[1], "--label", label).status == 0)
        let browser = try PageClient(receiver, viewer: "anna", role: "editor")
        try waitUntil("the index") { try browser.get("/").body.contains("<svg") }
        let pages = [
            "overview": "/", "search": "/?q=wide&group=alps", "beacons": "/beacons",
            "names": "/device/\(names[2])/names", "none": "/none", "link": "/login?once=x",
            "days": "/device/\(names[2])/days",
            "empty": "/device/\(names[2])/2020-01-01", "device": "/device/\(names[2])",
            "day": "/device/\(names[2])/\(now.prefix(10))", "login": "/login",
            "span": "/device/\(names[2])/2026-01-01..\(now.prefix(10))?zone=Europe/Berlin",
            "records": "/device/\(names[2])/\(now.prefix(10))/beacons",
            "sound": "/device/\(names[2])/\(now.prefix(10))/sound/01",
        ]
        let looks = try look(browser, pages)
        // Two sizes, by day, by night and on paper.
        #expect(looks.count == 6 * pages.count)
        for look in looks {
            #expect(look.overflow <= 0, "\(look.name)")
            #expect(look.marks == [], "\(look.name)")
            #expect(look.barriers ?? [] == [], "\(look.name)")
            // The console has a line for the page that does not exist.
            if !look.name.hasPrefix("none") { #expect(look.complaints == [], "\(look.name)") }
            #expect(look.addresses.allSatisfy { $0.hasPrefix("http://127.0.0.1:") }, "\(look.name)")
            let first =
                look.name.hasPrefix("login") || look.name.hasPrefix("link")
                ? "Log in" : "To the content"
            if !look.name.hasSuffix("paper") { #expect(look.tab == first, "\(look.name)") }
        }
        #expect(looks.filter { $0.name.hasPrefix("sound") }.allSatisfy { $0.sounds == [1.5] })
        #expect(looks.filter { $0.name.hasPrefix("device") }.allSatisfy { $0.text.contains(evil) })
    }
}
