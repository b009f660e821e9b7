// Small plots of numbers over a day, with gaps.

extension HTML {
    /// Draws a strip over a day, as wide as the page allows; `kind`: its class, `label`: its
    /// description.
    mutating func strip(
        _ kind: String,
        _ width: Int,
        _ height: Int,
        label: String,
        _ body: (inout HTML) -> Void
    ) {
        let attributes: [Attribute] = [
            ("class", kind), ("viewBox", "0 0 \(width) \(height)"),
            ("preserveAspectRatio", "none"), ("role", "img"), ("aria-label", label),
        ]
        element("svg", attributes, body)
    }

    /// Draws one slot of a strip of height `top`, filled to `height`.
    mutating func bar(_ kind: String, _ slot: Int, _ height: Double, of top: Double) {
        let attributes: [Attribute] = [
            ("class", kind), ("x", "\(slot)"), ("width", "1"),
            ("y", Words.decimal(top - height, 1)), ("height", Words.decimal(height, 1)),
        ]
        element("rect", attributes, "")
    }

    /// The number of ten-minute slots in a day.
    private static var slots: Int { Int(Day.milliseconds / IndexedPart.slot) }

    /// Draws a plot for each series of a stream.
    mutating func readings(_ series: [String: DaySeries]) {
        element("div", [("class", "plots")]) { html in
            for (name, values) in series.sorted(by: { $0.key < $1.key }) {
                html.plot(name, values)
            }
        }
    }

    /// Draws one series: name, last value, range, and a band from low to high.
    private mutating func plot(_ name: String, _ series: DaySeries) {
        guard let range = series.range else { return }
        let (words, unit) = Quantities.split(name)
        func text(_ number: Double) -> String { Quantities.text(number, unit, in: range) }
        let span = "\(text(range.lowerBound)) to \(text(range.upperBound))"
        element("figure") { html in
            html.element("figcaption") { html in
                html.element("b", words)
                html.text(" \(text(series.last.value)) ")
                html.element("span", [("class", "soft")], span)
            }
            let label = "\(words) from 0 h to 24 h: \(span)"
            html.strip("strip plot", Self.slots, 40, label: label) { $0.band(series, range) }
        }
    }

    /// Draws a polygon for each run of slots with values.
    private mutating func band(_ series: DaySeries, _ range: ClosedRange<Double>) {
        let width = range.upperBound - range.lowerBound
        func y(_ value: Double) -> Double {
            width > 0 ? 38 - (value - range.lowerBound) / width * 36 : 20
        }
        for run in Timeline.runs(series.slots.keys.sorted().map(Int64.init)) {
            var (over, under): ([String], [String]) = ([], [])
            for index in run {
                guard let slot = series.slots[Int(index)] else { continue }
                for x in [Double(index), Double(index) + 1] {
                    let place = Words.decimal(x, 0)
                    over.append("\(place),\(Words.decimal(y(slot.high) - 0.6, 1))")
                    under.append("\(place),\(Words.decimal(y(slot.low) + 0.6, 1))")
                }
            }
            let points = (over + under.reversed()).joined(separator: " ")
            element("polygon", [("class", "level"), ("points", points)], "")
        }
    }

    // MARK: Beacons

    /// Lists the beacons, most sightings first: when, how strong, and what they measured.
    ///
    /// `title` adds a beacon's name.
    mutating func beacons(
        _ readings: DayReadings,
        most: Int,
        title: (inout HTML, String) -> Void
    ) {
        let sorted = readings.beacons.sorted {
            ($1.value.sightings, $0.key) < ($0.value.sightings, $1.key)
        }
        let more = readings.isCut ? "more than " : ""
        let count = Words.count(Int64(sorted.count), "beacon", "beacons")
        let shown = sorted.count > most ? " The \(most) heard most are shown." : ""
        element("p", "\(more)\(count).\(shown)")
        for (beacon, day) in sorted.prefix(most) {
            element("section", [("class", "beacon")]) { html in
                html.element("h3") { title(&$0, beacon) }
                html.strength(day)
                if !day.readings.isEmpty { html.readings(day.readings) }
            }
        }
    }

    /// Draws a beacon's sightings; the height of a bar is the signal strength, -100 to -30 dBm.
    private mutating func strength(_ beacon: DayBeacon) {
        guard let strength = beacon.strength, let range = strength.range else { return }
        let sightings = Words.count(Int64(beacon.sightings), "sighting", "sightings")
        let (least, most) = (
            Words.decimal(range.lowerBound, 0), Words.decimal(range.upperBound, 0)
        )
        let words = "\(sightings), \(least) to \(most) dBm"
        element("p", [("class", "soft")], "\(beacon.kind), \(words)")
        strip("strip plot", Self.slots, 70, label: "Heard from 0 h to 24 h: \(words)") { html in
            for (slot, level) in strength.slots.sorted(by: { $0.key < $1.key }) {
                html.bar("cover", slot, min(max(level.high + 100, 4), 70), of: 70)
            }
        }
    }
}
