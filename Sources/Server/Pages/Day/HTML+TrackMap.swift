// The track of a span of days: a line of text and a map, small if the device stayed where it was.
import ServerBase
import ServerIndex

extension HTML {
    /// The maximum number of fixes on the map; more would look the same.
    private static let maxFixes = 1500

    /// Adds what is known of a track, and its map; nothing without fixes.
    mutating func track(
        _ track: Track,
        _ span: LocalSpan,
        _ device: String,
        _ stream: String,
        _ tiles: TilesURL?
    ) {
        element("h2", StreamTitle.heading("Track", stream))
        let parts = track.thinned(to: Self.maxFixes)
        guard let map = PlaceMap(parts.flatMap { $0 }), let first = parts.first?.first,
            let last = parts.last?.last
        else { return }
        let fixes = Words.count(Int64(track.fixes), "fix", "fixes")
        let stay = track.stay
        element("p") { html in
            if let stay { html.stay(stay) }
            html.summary(track, fixes, first, last)
            html.text(" ")
            let gpx = "/device/\(device)/\(span.days.name)/\(stream).gpx?\(span.query)"
            html.element("a", [("href", gpx), ("download", "")], "Download as GPX")
        }
        let box: [Attribute] = [
            ("data-track", Self.data(parts)), ("data-tiles", tiles?.text ?? ""),
            ("class", stay == nil ? "" : "small"),
        ]
        element("div", box) { html in
            map.draw(&html, label: "The track of \(span.days.title), \(fixes)") { html in
                html.lines(parts, map)
                html.mark(map, first, "start")
                html.mark(map, last, "end")
            }
        }
    }

    /// Adds `Stayed at 46.46390, 6.84570 within 12 m, `.
    private mutating func stay(_ stay: Track.Stay) {
        text("Stayed at ")
        place(stay.latitude, stay.longitude)
        text(" within \(Words.decimal(stay.metres.rounded(.up), 0)) m, ")
    }

    private mutating func summary(
        _ track: Track,
        _ fixes: String,
        _ first: Track.Fix,
        _ last: Track.Fix
    ) {
        text("\(fixes) from ")
        time(first.time, seconds: true)
        text(" to ")
        time(last.time, seconds: true)
        let holes = Int64(track.parts.count - 1)
        text(holes == 0 ? "." : ", \(Words.count(holes, "gap", "gaps")) (dashed).")
        if track.isCut { text(" These are too many fixes: a part of each ten minutes is shown.") }
        guard track.stay == nil else { return }
        text(" Last: ")
        place(last.latitude, last.longitude)
        text(".")
    }

    /// The fixes for the script: `MILLISECONDS,LATITUDE,LONGITUDE`, with `;` between parts.
    private static func data(_ parts: [[Track.Fix]]) -> String {
        parts.map { part in
            part.map {
                "\($0.time),\(Words.decimal($0.latitude, 6)),\(Words.decimal($0.longitude, 6))"
            }.joined(separator: " ")
        }.joined(separator: ";")
    }

    private mutating func lines(_ parts: [[Track.Fix]], _ map: PlaceMap) {
        var end: Track.Fix?
        for part in parts {
            guard let first = part.first, let last = part.last else { continue }
            if let end {
                let from = (map.x(end.longitude), map.y(end.latitude))
                map.line(&self, "hole", from, (map.x(first.longitude), map.y(first.latitude)))
            }
            let points = part.map {
                "\(PlaceMap.text(map.x($0.longitude))),\(PlaceMap.text(map.y($0.latitude)))"
            }
            let line: [Attribute] = [
                ("class", "track"), ("points", points.joined(separator: " ")),
            ]
            element("polyline", line, "")
            end = last
        }
    }

    private mutating func mark(_ map: PlaceMap, _ fix: Track.Fix, _ kind: String) {
        let attributes: [Attribute] = [
            ("class", kind), ("cx", PlaceMap.text(map.x(fix.longitude))),
            ("cy", PlaceMap.text(map.y(fix.latitude))), ("r", kind == "end" ? "6" : "4"),
        ]
        element("circle", attributes) { $0.element("title", "\(kind), \($0.words(fix.time))") }
    }
}
