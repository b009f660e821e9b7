// The libraries of plots and maps, and the tiles of maps.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerBase
@testable import ServerPages
@testable import ServerWeb

@Suite struct LibrariesTests {
    private let folder = TemporaryFolder()

    @Test func libraries_areTheFilesOfTheList_andNoOthers() throws {
        _ = try folder.write("leaflet", to: "secret.js")
        let none = WebLibraries(folder: folder.path)
        #expect(none.answers.isEmpty && none.plots.isEmpty && none.map.isEmpty)
        for (place, names) in [
            ("dygraphs", ["dygraph.min.js"]), ("leaflet", ["leaflet.min.js", "leaflet.css"]),
        ] {
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(place)",
                withIntermediateDirectories: true
            )
            for name in names { _ = try folder.write("/* \(name) */", to: "\(place)/\(name)") }
        }
        let some = WebLibraries(folder: folder.path)
        #expect(
            some.answers.keys.sorted() == [
                "/lib/dygraph.js", "/lib/leaflet.css", "/lib/leaflet.js",
            ]
        )
        // Its style sheet is not there.
        #expect(some.plots.isEmpty)
        #expect(some.map.count == 3)
        let sheet = try #require(some.answers["/lib/leaflet.css"])
        #expect(String(decoding: sheet.body, as: UTF8.self) == "/* leaflet.css */")
        let headers = Dictionary(uniqueKeysWithValues: sheet.headers)
        #expect(headers["Content-Type"] == "text/css; charset=utf-8")
        #expect(headers["X-Content-Type-Options"] == "nosniff")
        #expect(headers["Cache-Control"] == "max-age=86400")
    }

    @Test func missingLibraries_areNamed_withTheCommand() {
        var html = HTML()
        html.missing(WebLibraries(folder: folder.path))
        let text = String(decoding: html.bytes, as: UTF8.self)
        #expect(text.contains("<code>apt install libjs-dygraphs libjs-leaflet</code>"))
    }

    @Test func assets_areFound_andAMissingOneIsNamed() throws {
        let sources = PageAssets.folder(of: "/proc/self/exe")
        #expect(sources == Tree.path("Sources/Server/Pages/Assets"))
        #expect(
            PageAssets.folder(of: "/usr/bin/waypost-receiver")
                == "/usr/share/waypost-receiver/assets"
        )
        let mine = TemporaryFolder("share/waypost-receiver/assets", "Sources/Server/Pages/Assets")
        let installed = PageAssets.folder(of: mine.path + "/bin/waypost-receiver")
        #expect(installed == mine.path + "/share/waypost-receiver/assets")
        let answers = try PageAssets().answers
        let script = try #require(answers["/map.js"])
        #expect(
            script.body == Array(try Data(contentsOf: URL(fileURLWithPath: "\(sources)/map.js")))
        )
        #expect(script.headers.contains { $0.name == "Cache-Control" && $0.value == "max-age=300" })
        for name in try FileManager.default.contentsOfDirectory(atPath: sources) {
            #expect(answers["/\(name)"] != nil, "\(name)")
            if name != "map.js" { _ = try folder.write(name, to: name) }
        }
        do {
            _ = try PageAssets(folder: folder.path)
            Issue.record("map.js is missing, and nothing is reported")
        } catch let failure as StartError {
            let text = failure.description
            #expect(text.contains("without \(folder.path)/map.js (No such file or directory)"))
            #expect(text.hasSuffix("run: apt install --reinstall waypost-receiver"))
        }
    }

    @Test func tilesURL_isAHostAndAPath_andNothingMore() {
        let good = [
            ("https://tile.openstreetmap.org/{z}/{x}/{y}.png", "https://tile.openstreetmap.org"),
            ("http://10.0.0.7:8080/t/{z}/{y}/{x}?key=a%20b", "http://10.0.0.7:8080"),
        ]
        for (text, origin) in good { #expect(TilesURL(text)?.origin == origin, "\(text)") }
        let path = "/{z}/{x}/{y}.png"
        let bad = [
            "", "tile.example.org\(path)", "ftp://tile.example.org\(path)", "https://\(path)",
            "https://*\(path)", "https://*.example.org\(path)",
            "https://a.example.org; script-src *\(path)",
            "https://a.example.org *\(path)", "https://user@a.example.org\(path)",
            "https://a.example.org:x\(path)",
            "https://a.example.org:0\(path)", "https://a.example.org:99999\(path)",
            "https://a..org\(path)",
            "https://-a.org\(path)", "https://[::1]\(path)", "https://{s}.example.org\(path)",
            "https://a.example.org", "https://a.example.org/{z}/{x}.png",
            "https://a.example.org\(path){x}",
            "https://a.example.org/{s}\(path)", "https://a.example.org\(path)\r\nX: y",
            "https://a.example.org\(path)\"",
            "https://a.example.org\(path)<", "https://a.example.org\(path)#a",
            "https://a.example.org/'\(path)",
            "https://a.example.org\(path)" + String(repeating: "a", count: 500),
        ]
        for text in bad { #expect(TilesURL(text) == nil, "\(text)") }
    }

    /// The policy names the tiles' server on pages with a map, and there alone.
    @Test func tiles_areAllowedOnPagesWithAMap() throws {
        let tiles = "https://tiles.example.org/{z}/{x}/{y}.png"
        let receiver = try ReceiverProcess(["--tiles-url", tiles])
        let browser = try PageClient(receiver, viewer: "anna")
        func policy(_ path: String) throws -> Bool {
            let header = try browser.get(path).header
            #expect(header.contains("script-src 'self'; connect-src 'self'; img-src 'self'"))
            return header.contains("img-src 'self' https://tiles.example.org; media-src")
        }
        #expect(try !policy("/"))
        try receiver.send(
            "linux_gpsd_location",
            on: "2026-11-21",
            [("01:00:00", #""latitude":47,"longitude":8"#)]
        )
        try receiver.send("weather", on: "2026-11-22", [("01:00:00", #""t":1"#)])
        let page = try browser.page("/device/d1/2026-11-21", with: "data-track")
        #expect(page.contains("data-tiles=\"\(tiles)\""))
        #expect(try policy("/device/d1/2026-11-21") && policy("/"))
        for path in ["/device/d1", "/device/d1/2026-11-22"] {
            #expect(try !policy(path), "\(path)")
        }
        let wrong = try Process.run(
            Tree.program("waypost-receiver"),
            ["--tiles-url", "https://a.example.org; script-src */{z}/{x}/{y}"]
        )
        #expect(wrong.status == 64)
        #expect(wrong.error.contains("--tiles-url takes http://… or https://…"))
    }

    @Test(.enabled(if: !WebLibraries().plots.isEmpty && !WebLibraries().map.isEmpty))
    func installedLibraries_arePublic_andLoadedByDayPages() throws {
        let receiver = try ReceiverProcess()
        try receiver.send(
            "linux_gpsd_location",
            on: "2026-11-21",
            [("01:00:00", #""latitude":47,"longitude":8"#)]
        )
        let browser = try PageClient(receiver, viewer: "anna")
        let page = try browser.page("/device/d1/2026-11-21", with: "data-track")
        let files = page.matches(of: /(?:src|href)="(\/(?:lib\/)?[a-z]+\.(?:js|css))"/).map {
            String($0.1)
        }
        #expect(files.count == 8)
        for file in files { #expect(try PageClient(receiver).get(file).status == 200, "\(file)") }
        for other in ["/lib/", "/lib/dygraph.min.js", "/lib/../dygraph.js", "/lib/leaflet.js/x"] {
            #expect(try browser.get(other).status == 404, "\(other)")
        }
        #expect(try browser.request("POST", "/lib/leaflet.js").status == 405)
    }
}
