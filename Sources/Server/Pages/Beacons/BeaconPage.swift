// The page of one beacon: which devices hear it, when and how strongly, and what it measures.
import Host
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    /// `device`: the one whose readings are drawn; nil for the one that heard it last.
    func beaconPage(_ id: String, device: String?, at now: Int64) throws -> BeaconPage {
        let (reader, note) = fleet.openIndex()
        let heard = try reader?.sightings(of: id) ?? []
        guard isEditor || !heard.isEmpty || known.beacons[id] != nil else { throw Self.nothing }
        var page = BeaconPage(
            beacon: id,
            names: known,
            isEditor: isEditor,
            heard: heard,
            now: now,
            note: note,
            libraries: libraries
        )
        guard let reader, let first = heard.first else { return page }
        page.numbers = try heard.map { try BeaconNumbers($0, reader) }
        page.days = try heard.flatMap { one in
            try reader.days(of: one).map { (one.device, $0.day, $0.sightings, $0.strongest) }
        }.sorted { ($1.day.start, $0.device) < ($0.day.start, $1.device) }
        let drawn = heard.first { $0.device == device } ?? first
        let time = drawn.day.start..<drawn.day.end
        let readings = try reader.readings(of: drawn.device, drawn.stream, in: time)
        page.drawn = readings.beacons[id].map { (drawn, $0) }
        return page
    }
}

struct BeaconPage {
    /// The maximum number of days shown.
    private static let maxRows = 100

    let beacon: String
    let names: KnownNames
    let isEditor: Bool
    /// Its newest sighting by each device, newest first.
    let heard: [HeardBeacon]
    let now: Int64
    let note: String?
    let libraries: WebLibraries
    /// The numbers of each sighting in `heard`.
    var numbers: [BeaconNumbers] = []
    /// Newest first.
    var days: [(device: String, day: Day, sightings: Int64, strongest: Double)] = []
    /// The sighting whose day is drawn, and that day.
    var drawn: (heard: HeardBeacon, day: DayBeacon)?
    /// The label that the form sent, and why it cannot be stored.
    var label: String?
    var wrong: String?

    static func address(_ beacon: String) -> String { "/beacon/\(FormField.written(beacon))" }

    func html() -> HTML {
        let title = names.beacons[beacon] ?? beacon
        return .page("\(title) – Waypost fleet", now: now, loads: libraries.plots) { html in
            html.element("h1") { html in
                html.text(title)
                guard title != beacon else { return }
                html.text(" ")
                html.element("span", [("class", "under")], beacon)
            }
            html.note(note)
            html.missing(libraries)
            if let kind = heard.first?.kind, !kind.isEmpty {
                html.element("p", [("class", "soft")], RecordWords.of(kind, in: "kind"))
            }
            if isEditor {
                let label = label ?? names.beacons[beacon]
                html.naming(beacon, label, back: Self.address(beacon), wrong, isOpen: label == nil)
            }
            guard !heard.isEmpty else {
                return html.element("p", [("class", "soft")], "No device has heard it yet.")
            }
            devices(&html)
            readings(&html)
            dayTable(&html)
        }
    }

    private func devices(_ html: inout HTML) {
        html.element("h2", "Heard by")
        html.table(["Device", "Last heard", "Battery", "Last readings"]) { html in
            for (one, numbers) in zip(heard, numbers) {
                html.element("tr") { html in
                    html.element("th", [("scope", "row")]) {
                        $0.device(one.device, names, isLink: true)
                    }
                    html.cell("Last heard", one) { html, one in
                        html.element("a", [("href", one.address)]) { $0.time(one.time) }
                        html.ago(one.time, now: now)
                    }
                    html.cell("Battery", numbers.battery) { $0.text($1) }
                    html.cell("Last readings", numbers.others.joined(separator: ", ")) {
                        $0.text($1)
                    }
                }
            }
        }
    }

    /// Adds the numbers of one device's day; the script of the plots draws them.
    private func readings(_ html: inout HTML) {
        guard let (one, day) = drawn else { return }
        html.element("h2", "Readings by \(names.title(one.device)), UTC day \(one.day.name)")
        html.element("nav", [("class", "ways screen"), ("aria-label", "Devices")]) { html in
            for other in heard where other.device != one.device {
                let device = FormField.written(other.device)
                let link = "\(Self.address(beacon))?device=\(device)"
                html.element("a", [("href", link)], names.title(other.device))
            }
        }
        html.plotKey(of: one.device, in: one.day.start..<one.day.end)
        html.readings(day.readings, one.stream, beacon: beacon)
    }

    private func dayTable(_ html: inout HTML) {
        html.element("h2", "Days (UTC)")
        html.table(["Day", "Device", "Sightings", "Strongest"]) { html in
            for (device, day, sightings, strongest) in days.prefix(Self.maxRows) {
                html.element("tr") { html in
                    html.element("th", [("scope", "row")]) {
                        $0.element("a", [("href", day.address(of: device))], day.title)
                    }
                    html.cell("Device", device) { $0.text(names.title($1)) }
                    html.cell("Sightings", Words.count(sightings)) { $0.text($1) }
                    html.cell("Strongest", "\(Words.decimal(strongest, 0)) dBm") { $0.text($1) }
                }
            }
        }
        html.more(days.count - Self.maxRows, "day", "days")
    }
}
