// The page of a device's day: received data, gaps, and the track.

struct DayPage {
    /// The maximum number of points drawn of a track; more would look the same.
    private static let mostPoints = 2000

    private static let mostBeacons = 40

    /// A stream and its content on the page.
    typealias Part = (stream: String, content: Content)

    /// The kind of data in a stream's day.
    enum Content {
        case track(Track)
        case sound(SoundDay)
        case readings(DayReadings)

        /// The order on the page.
        fileprivate var place: Int {
            switch self {
            case .track: 0
            case .readings: 1
            case .sound: 2
            }
        }
    }

    let device: String
    let names: KnownNames
    let isEditor: Bool
    let day: Day
    /// The nearest days with records, before and after.
    let before: String?
    let after: String?
    let timeline: Timeline
    let parts: [Part]
    let now: Int64
    let note: String?

    func html() -> HTML {
        .page("\(names.title(device)), \(day.name) – Waypost fleet", now: now) { html in
            html.heading(device, day, label: names.label(device))
            html.note(note)
            ways(&html)
            guard !timeline.isEmpty || !parts.isEmpty else {
                html.element("p", [("class", "soft")], "No data on this day.")
                return
            }
            html.element("h2", "Received and missing data")
            timeline.draw(&html)
            let sorted = parts.sorted {
                ($0.content.place, $0.stream) < ($1.content.place, $1.stream)
            }
            for (stream, content) in sorted {
                draw(stream, content, &html)
            }
        }
    }

    private func draw(_ stream: String, _ content: Content, _ html: inout HTML) {
        let path = "/device/\(device)/\(day.name)/\(stream)"
        switch content {
        case .track(let track): draw(stream, track, &html)
        case .sound(let sound):
            html.element("h2", StreamTitle.heading("Sound", stream))
            html.sound(sound, day, at: path)
        case .readings(let readings):
            guard !readings.series.isEmpty || !readings.beacons.isEmpty else { return }
            let kind = readings.beacons.isEmpty ? "Readings" : "Beacons"
            html.element("h2", StreamTitle.heading(kind, stream))
            html.element("p") { $0.element("a", [("href", path)], "Records") }
            if readings.beacons.isEmpty {
                html.readings(readings.series)
            } else {
                html.beacons(readings, most: Self.mostBeacons) {
                    $0.beacon($1, names, isEditor: isEditor)
                }
            }
        }
    }

    private func ways(_ html: inout HTML) {
        html.element("nav", [("class", "ways screen"), ("aria-label", "Days")]) { html in
            for (name, arrow, isBefore) in [(before, "← ", true), (after, " →", false)] {
                guard let name else { continue }
                let words = isBefore ? arrow + name : name + arrow
                html.element("a", [("href", "/device/\(device)/\(name)")], words)
            }
        }
    }

    // MARK: The track

    private func draw(_ stream: String, _ track: Track, _ html: inout HTML) {
        html.element("h2", StreamTitle.heading("Track", stream))
        let points = track.parts.flatMap { part in
            part.map { PlaceMap.Point(latitude: $0.latitude, longitude: $0.longitude) }
        }
        guard let map = PlaceMap(points), let first = track.parts.first?.first,
            let last = track.last
        else { return }
        let fixes = Words.count(Int64(track.fixes), "fix", "fixes")
        html.element("p") { html in
            html.text("\(fixes) from \(Words.second(first.time)) to \(Words.second(last.time))")
            let holes = Int64(track.parts.count - 1)
            html.text(holes == 0 ? ". " : ", \(Words.count(holes, "gap", "gaps")) (dashed). ")
            if track.isCut { html.text("Only the first fixes are shown. ") }
            let gpx = "/device/\(device)/\(day.name)/\(stream).gpx"
            html.element("a", [("href", gpx), ("download", "")], "GPX")
            html.text(" ")
            let place = Vitals.Place(
                latitude: last.latitude,
                longitude: last.longitude,
                time: now
            )
            html.text("Last: ")
            html.place(place, now: now)
        }
        map.draw(&html, label: "The track on \(day.name), \(fixes)") { html in
            lines(track, map, &html)
            mark(map, first, "start", &html)
            mark(map, last, "end", &html)
        }
    }

    private func lines(_ track: Track, _ map: PlaceMap, _ html: inout HTML) {
        let every = max(1, track.fixes / Self.mostPoints)
        var end: Track.Fix?
        for part in track.parts {
            guard let first = part.first, let last = part.last else { continue }
            if let end {
                let from = (map.x(end.longitude), map.y(end.latitude))
                map.line(&html, "hole", from, (map.x(first.longitude), map.y(first.latitude)))
            }
            let shown = part.enumerated().filter { $0.offset % every == 0 }.map(\.element) + [last]
            let points = shown.map {
                "\(PlaceMap.text(map.x($0.longitude))),\(PlaceMap.text(map.y($0.latitude)))"
            }
            let line: [HTML.Attribute] = [
                ("class", "track"), ("points", points.joined(separator: " ")),
            ]
            html.element("polyline", line, "")
            end = last
        }
    }

    private func mark(_ map: PlaceMap, _ fix: Track.Fix, _ kind: String, _ html: inout HTML) {
        let attributes: [HTML.Attribute] = [
            ("class", kind), ("cx", PlaceMap.text(map.x(fix.longitude))),
            ("cy", PlaceMap.text(map.y(fix.latitude))), ("r", kind == "end" ? "6" : "4"),
        ]
        html.element("circle", attributes) {
            $0.element("title", "\(kind), \(Words.second(fix.time))")
        }
    }
}
