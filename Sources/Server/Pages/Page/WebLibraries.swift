// The JavaScript libraries that draw plots and maps, from Debian's packages.
import Host
package import ServerWeb

/// A file that a page loads besides those that every page has.
package enum PageFile {
    case script(StaticString)
    case sheet(StaticString)
}

/// The libraries that are installed, read once at the start, and the map tiles they may load.
package struct WebLibraries: Sendable {
    static let usualFolder = "/usr/share/javascript"

    static let script = "text/javascript; charset=utf-8"
    static let sheet = "text/css; charset=utf-8"
    /// No other file can be requested, whatever the address.
    private static let files = [
        ("/lib/dygraph.js", "dygraphs/dygraph.min.js", script),
        ("/lib/dygraph.css", "dygraphs/dygraph.min.css", sheet),
        ("/lib/leaflet.js", "leaflet/leaflet.min.js", script),
        ("/lib/leaflet.css", "leaflet/leaflet.css", sheet),
    ]
    /// Bytes of one file.
    static let largest = 4 << 20

    /// By their addresses; each belongs to no session.
    package let answers: [String: HTTPAnswer]
    package let tiles: TilesURL?

    /// `folder`: that of the packages.
    package init(folder: String = Self.usualFolder, tiles: TilesURL? = nil) {
        var answers: [String: HTTPAnswer] = [:]
        for (address, name, type) in Self.files {
            guard let file = try? SmallFile.read("\(folder)/\(name)", limit: Self.largest),
                file.isRegular
            else { continue }
            answers[address] = HTTPAnswer(200, type: type, file.bytes, cache: "max-age=86400")
        }
        (self.answers, self.tiles) = (answers, tiles)
    }

    /// The files that draw plots; empty without dygraphs.
    var plots: [PageFile] {
        has("/lib/dygraph.js", "/lib/dygraph.css")
            ? [.sheet("/lib/dygraph.css"), .script("/lib/dygraph.js"), .script("/plots.js")] : []
    }

    /// The files that draw a map; empty without leaflet.
    package var map: [PageFile] {
        has("/lib/leaflet.js", "/lib/leaflet.css")
            ? [.sheet("/lib/leaflet.css"), .script("/lib/leaflet.js"), .script("/map.js")] : []
    }

    /// The packages that are missing.
    fileprivate var missing: [String] {
        (plots.isEmpty ? ["libjs-dygraphs"] : []) + (map.isEmpty ? ["libjs-leaflet"] : [])
    }

    private func has(_ addresses: String...) -> Bool {
        addresses.allSatisfy { answers[$0] != nil }
    }
}

extension HTML {
    /// Names the packages that this server lacks for plots and maps that can be zoomed.
    mutating func missing(_ libraries: WebLibraries) {
        let packages = libraries.missing.joined(separator: " ")
        guard !packages.isEmpty else { return }
        let words = "Plots and maps that can be zoomed need packages that this server lacks: "
        element("p", [("class", "soft screen")]) { html in
            html.text(words)
            html.element("code", "apt install \(packages)")
            html.text(", then restart it.")
        }
    }
}
