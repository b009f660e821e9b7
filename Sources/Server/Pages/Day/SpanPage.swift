// The page of a device's day, week, month or any other days: received data, gaps, track, numbers.
import ServerBase
import ServerIndex

struct SpanPage {
    private static let maxBeacons = 40
    /// The maximum number of links to the records of a stream's UTC days.
    private static let maxDates = 31

    /// A stream and its content on the page.
    struct Part {
        let stream: String
        let content: Content

        /// Its order on the page; the device's own numbers come last.
        fileprivate var place: (Int, Int, String) {
            (content.place, stream.hasPrefix("waypost_") ? 1 : 0, stream)
        }
    }

    /// The kind of data in a stream.
    enum Content {
        case track(Track)
        case sound(AudioSpan)
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
    let span: LocalSpan
    let choice: ZoneChoice
    /// The offset of the device's position.
    let site: String?
    /// The first and the last day with records of the device; nil without any.
    let known: (first: Day, last: Day)?
    let timeline: Timeline
    let parts: [Part]
    let absent: [AbsentSound]
    /// By stream, of the UTC days that the span touches.
    let detections: [String: [String: DetectedSpecies]]
    let now: Int64
    let note: String?
    let libraries: WebLibraries

    func html() -> HTML {
        let files = libraries.plots + (hasTrack ? libraries.map : [])
        let title = "\(names.title(device)), \(span.days.title) – Waypost fleet"
        return .page(title, now: now, loads: files, zone: span.zone, isOpen: choice.isOpen) {
            html in
            heading(&html)
            html.note(note)
            html.note(choice.note)
            ways(&html)
            let path = "/device/\(device)/\(span.days.name)"
            choice.draw(&html, path, span.days, site: site)
            html.element("p", [("class", "soft")], "Times and days in \(span.zoneText).")
            guard !timeline.isEmpty || !parts.isEmpty else {
                html.element("p", [("class", "soft")], "No data in this time.")
                return
            }
            html.missing(libraries)
            timeline.drawEnd(&html)
            html.element("h2", "Received and missing data")
            timeline.draw(&html) { html, loss in
                guard loss.kind == .loss else { return }
                let day = Day(of: max(loss.from, span.time.lowerBound))
                html.sound(at: loss.from, sound, device, day)
            }
            html.absent(absent, of: device, in: span, isEditor: isEditor)
            html.plotKey(of: device, in: span.time)
            for part in parts.sorted(by: { place($0) < place($1) }) {
                draw(part.stream, part.content, &html)
            }
        }
    }

    /// The order of parts; detections come first, without plots of their numbers.
    private func place(_ part: Part) -> (Int, Int, String) {
        detections[part.stream] == nil ? part.place : (-1, 0, part.stream)
    }

    private func heading(_ html: inout HTML) {
        html.element("h1") { html in
            let label = names.label(device)
            html.element("a", [("href", "/device/\(device)")], label ?? device)
            html.text(", \(span.days.title)")
            guard label != nil else { return }
            html.text(" ")
            html.element("span", [("class", "under")], device)
        }
    }

    private func draw(_ stream: String, _ content: Content, _ html: inout HTML) {
        switch content {
        case .track(let track): html.track(track, span, device, stream, libraries.tiles)
        case .sound(let sound):
            html.element("h2", StreamTitle.heading("Sound", stream))
            html.sound(sound, span, device, stream)
        case .readings(let readings) where detections[stream] != nil:
            let species = detections[stream] ?? [:]
            html.detections(
                [stream: species],
                of: device,
                sound: sound,
                dates: readings.dates
            )
            records(readings, stream, &html)
        case .readings(let readings):
            guard !readings.series.isEmpty || !readings.beacons.isEmpty else { return }
            let kind = readings.beacons.isEmpty ? "Readings" : "Beacons"
            html.element("h2", StreamTitle.heading(kind, stream))
            records(readings, stream, &html)
            if readings.beacons.isEmpty {
                html.readings(readings.series, stream)
            } else {
                html.beacons(readings, stream, maximum: Self.maxBeacons) {
                    $0.beacon($1, names, isEditor: isEditor)
                }
            }
        }
    }

    /// Adds links to the records, which have a page for each UTC day.
    private func records(_ readings: DayReadings, _ stream: String, _ html: inout HTML) {
        html.element("p", [("class", "dates")]) { html in
            html.text("Records of the UTC day")
            for date in readings.dates.prefix(Self.maxDates).reversed() {
                html.text(" ")
                let path = "/device/\(device)/\(date)/\(stream)"
                html.element("a", [("href", path)], Day(date)?.title ?? date)
            }
        }
        html.more(readings.dates.count - Self.maxDates, "day", "days")
        guard let since = readings.since else { return }
        let words = "These are many numbers: only those since \(since) (UTC) are added up."
        html.element("p", [("class", "wrong")], words)
    }

    /// True if a track is shown.
    var hasTrack: Bool {
        parts.contains { if case .track(let track) = $0.content { track.fixes > 0 } else { false } }
    }

    /// The first stream with audio.
    private var sound: String? {
        parts.first {
            if case .sound(let sound) = $0.content { !sound.slots.isEmpty } else { false }
        }?.stream
    }

    private func ways(_ html: inout HTML) {
        let days = span.days
        html.element("nav", [("class", "ways screen"), ("aria-label", "Days")]) { html in
            if let before = days.neighbour(-1), let known, known.first.start <= before.last.start {
                link("← \(before.title)", before, &html)
            }
            for (name, count) in [("Day", 1), ("Week", 7), ("Month", 30)] {
                guard let other = days.ending(count: count) else { continue }
                link(name, other, isCurrent: days.count == count, &html)
            }
            if let after = days.neighbour(1), let known, known.last.start >= after.first.start {
                link("\(after.title) →", after, &html)
            }
        }
    }

    private func link(
        _ words: String,
        _ days: DaySpan,
        isCurrent: Bool = false,
        _ html: inout HTML
    ) {
        let mark: [HTML.Attribute] = isCurrent ? [("aria-current", "page")] : []
        html.element("a", [("href", span.address(device, days))] + mark, words)
    }
}
