// The species that programs have recognised in the sound, from the index.
import ServerBase
import ServerIndex

extension HTML {
    /// Lists the species of each stream: how often and how surely they were heard, with links to the
    /// sound; `sound`: the stream with audio, nil without one.
    mutating func detections(
        _ streams: [String: [String: DetectedSpecies]],
        of device: String,
        sound: String?,
        dates: [String]
    ) {
        for (stream, species) in streams.sorted(by: { $0.key < $1.key }) {
            element("h2", StreamTitle.heading("Detections", stream))
            let days = dates.last.map {
                $0 == dates[0] ? " on the UTC day \($0)" : " on the UTC days \($0) to \(dates[0])"
            }
            element("p", "\(Self.words(species.values))\(days ?? "").")
            table(["Species", "Detections", "Best confidence", "First", "Last"]) { html in
                let sorted = species.sorted {
                    ($1.value.records, $0.key) < ($0.value.records, $1.key)
                }
                for (name, one) in sorted {
                    html.element("tr") { html in
                        html.element(
                            "th",
                            [("scope", "row")],
                            name.isEmpty ? "other species" : name
                        )
                        html.cell("Detections", one) { $0.records(of: name, $1, stream, device) }
                        html.cell("Best confidence", one) { html, one in
                            html.text("\(Words.decimal(one.best, 2)), ")
                            html.detection(at: one.at, sound, device)
                        }
                        html.cell("First", one.first) { $0.detection(at: $1, sound, device) }
                        html.cell("Last", one.last) { $0.detection(at: $1, sound, device) }
                    }
                }
            }
        }
    }

    /// Adds the number of a species' detections, with a link to them.
    private mutating func records(
        of name: String,
        _ one: DetectedSpecies,
        _ stream: String,
        _ device: String
    ) {
        guard !name.isEmpty, Day(of: one.first) == Day(of: one.last) else {
            return text(Words.count(one.records))
        }
        let day = "/device/\(device)/\(Day(of: one.last).name)/\(stream)"
        let link = "\(day)?species=\(FormField.written(name))"
        element("a", [("href", link)], Words.count(one.records))
    }

    private mutating func detection(at time: Int64, _ sound: String?, _ device: String) {
        self.time(time, seconds: true)
        self.sound(at: time, sound, device, Day(of: time))
    }

    /// Adds what a device's programs have recognised today; nothing without detections.
    mutating func detections(today streams: [String: [String: DetectedSpecies]]) {
        let species = streams.values.flatMap(\.values)
        guard !species.isEmpty else { return }
        raw(#" <br><span class="soft line">"#)
        text("\(Self.words(species)) today (UTC)")
        raw("</span>")
    }

    private static func words(_ species: some Collection<DetectedSpecies>) -> String {
        let records = species.reduce(0) { $0 + $1.records }
        return "\(Words.count(Int64(species.count))) species, "
            + Words.count(records, "detection", "detections")
    }
}
