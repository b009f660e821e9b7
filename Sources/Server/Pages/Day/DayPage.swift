// The page of a device's day: received data, gaps, and the track.
import ServerBase
import ServerIndex

struct DayPage {
    /// The maximum number of points drawn of a track; more would look the same.
    private static let maxPoints = 2000

    private static let maxBeacons = 40

    /// A stream and its content on the page.
    struct Part {
        let stream: String
        let content: Content

        /// Its order on the page; the device's own numbers come last.
        fileprivate var place: (Int, Int, String) {
            (content.place, stream.hasPrefix("waypost_") ? 1 : 0, stream)
        }
    }

    /// The kind of data in a stream's day.
    enum Content {
        case track(Track)
        case sound(AudioDay)
        case readings(DayReadings)

        /// The order on the page.
        fileprivate var place: Int {
            switch self {
            case .sound: 0
            case .track: 1
            case .readings: 2
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
    let libraries: WebLibraries

    func html() -> HTML {
        let files = libraries.plots + (hasTrack ? libraries.map : [])
        let title = "\(names.title(device)), \(day.name) – Waypost fleet"
        return .page(title, now: now, loads: files) { html in
            html.heading(device, day, label: names.label(device))
            html.note(note)
            ways(&html)
            guard !timeline.isEmpty || !parts.isEmpty else {
                html.element("p", [("class", "soft")], "No data on this day.")
                return
            }
            range(&html)
            html.element("h2", "Received and missing data")
            timeline.draw(&html) { html, loss in
                if loss.kind == .loss { html.sound(at: loss.from, sound, device, day) }
            }
            let sorted = parts.sorted {
                $0.place < $1.place
            }
            for part in sorted {
                draw(part.stream, part.content, &html)
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
                html.readings(readings.series, stream)
            } else {
                html.beacons(readings, stream, maximum: Self.maxBeacons) {
                    $0.beacon($1, names, isEditor: isEditor)
                }
            }
        }
    }

    /// True if a track is shown.
    var hasTrack: Bool {
        parts.contains { if case .track(let track) = $0.content { track.fixes > 0 } else { false } }
    }

    /// The first stream with audio on this day.
    private var sound: String? {
        parts.first {
            if case .sound(let sound) = $0.content { !sound.chunks.isEmpty } else { false }
        }?.stream
    }

    /// Adds the place where the script of the plots offers other ranges of time.
    private func range(_ html: inout HTML) {
        let attributes: [HTML.Attribute] = [
            ("id", "range"), ("class", "range screen"), ("aria-label", "Time of the plots"),
            ("data-device", device), ("data-day", day.name), ("hidden", ""),
        ]
        html.element("nav", attributes, "")
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
        guard let map = PlaceMap(track.parts.flatMap { $0 }), let last = track.last,
            let first = track.parts.first?.first
        else { return }
        let fixes = Words.count(Int64(track.fixes), "fix", "fixes")
        html.element("p") { html in
            html.text("\(fixes) from ")
            html.time(first.time, seconds: true)
            html.text(" to ")
            html.time(last.time, seconds: true)
            let holes = Int64(track.parts.count - 1)
            html.text(holes == 0 ? ". " : ", \(Words.count(holes, "gap", "gaps")) (dashed). ")
            if track.isCut { html.text("Only the first fixes are shown. ") }
            html.text("Last: ")
            // Its time is already there.
            html.place(last, now: last.time)
            html.text(". ")
            let gpx = "/device/\(device)/\(day.name)/\(stream).gpx"
            html.element("a", [("href", gpx), ("download", "")], "Download as GPX")
        }
        let box: [HTML.Attribute] = [
            ("data-track", stream), ("data-device", device), ("data-day", day.name),
            ("data-tiles", libraries.tiles?.text ?? ""),
        ]
        html.element("div", box) { html in
            map.draw(&html, label: "The track on the UTC day \(day.name), \(fixes)") { html in
                lines(track, map, &html)
                mark(map, first, "start", &html)
                mark(map, last, "end", &html)
            }
        }
    }

    private func lines(_ track: Track, _ map: PlaceMap, _ html: inout HTML) {
        let every = max(1, track.fixes / Self.maxPoints)
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
            $0.element("title", "\(kind), \(Words.second(fix.time)) UTC")
        }
    }
}
