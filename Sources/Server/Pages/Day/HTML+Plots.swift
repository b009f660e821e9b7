// The numbers of a span of days: quantities, beacons.
import ServerBase

extension HTML {
    /// Adds what the plots of a page show and how to use them; their script reads the device and the
    /// time from it.
    ///
    /// `time`: milliseconds since 1970.
    mutating func plotKey(of device: String, in time: Range<Int64>) {
        let attributes: [Attribute] = [
            ("id", "plots"), ("class", "screen"), ("data-device", device),
            ("data-from", "\(time.lowerBound)"), ("data-to", "\(time.upperBound)"),
            ("hidden", ""),
        ]
        element("div", attributes) { html in
            html.raw(
                """
                <ul class="legend"><li><svg viewBox="0 0 20 10" aria-hidden="true"><rect class="line" y="4" width="20" height="2"/></svg>
                line: mean of each <output>interval</output></li><li><svg viewBox="0 0 20 10" aria-hidden="true"><rect class="band"
                width="20" height="10"/></svg> band: its least to its greatest value</li></ul>
                <p class="soft">Drag to zoom all plots, double-click for all of the time. In a plot, the arrow keys go from value to
                value.</p>
                """
            )
        }
    }

    /// Lists the numbers of a stream, or of one of its beacons; the page's script draws them.
    ///
    /// The usual quantities come first, and counters are folded.
    mutating func readings(_ series: [String: DaySeries], _ stream: String, beacon: String = "") {
        let sorted = series.sorted {
            (Quantities.rank($0.key), $0.key) < (Quantities.rank($1.key), $1.key)
        }
        let counters = sorted.filter { Quantities.isCounter($0.key) }
        plots(sorted.filter { !Quantities.isCounter($0.key) }, stream, beacon)
        guard !counters.isEmpty else { return }
        element("details") { html in
            html.element("summary", Words.count(Int64(counters.count), "counter", "counters"))
            html.plots(counters, stream, beacon)
        }
    }

    private mutating func plots(
        _ series: [(key: String, value: DaySeries)],
        _ stream: String,
        _ beacon: String
    ) {
        guard !series.isEmpty else { return }
        let place: [Attribute] = [
            ("class", "plots"), ("data-stream", stream), ("data-beacon", beacon),
        ]
        element("div", place) { html in
            for (name, values) in series { html.plot(name, values) }
        }
    }

    /// Adds one quantity: name, last value, range and mean.
    private mutating func plot(_ name: String, _ series: DaySeries) {
        let (words, unit, factor) = Quantities.shown(name)
        let range = series.range.lowerBound * factor...series.range.upperBound * factor
        func text(_ number: Double) -> String { Quantities.text(number, unit, in: range) }
        let figure: [Attribute] = [
            ("data-key", name), ("data-unit", unit), ("data-factor", "\(factor)"),
        ]
        element("figure", figure) { html in
            html.element("figcaption") { html in
                html.element("b", words)
                html.text(" \(text(series.last * factor)) ")
                let span = "\(text(range.lowerBound)) to \(text(range.upperBound))"
                let mean = text(series.mean * factor)
                html.element("span", [("class", "soft")], "\(span), mean \(mean)")
            }
        }
    }

    // MARK: Beacons

    /// Lists the beacons, most sightings first: when, how strong, and what they measured.
    ///
    /// `title` adds a beacon's name.
    package mutating func beacons(
        _ readings: DayReadings,
        _ stream: String,
        maximum: Int,
        title: (inout HTML, String) -> Void
    ) {
        let sorted = readings.beacons.sorted {
            ($1.value.sightings, $0.key) < ($0.value.sightings, $1.key)
        }
        let more = readings.isCut ? "more than " : ""
        let count = Words.count(Int64(sorted.count), "beacon", "beacons")
        let shown = sorted.count > maximum ? " The \(maximum) heard most are shown." : ""
        element("p", "\(more)\(count).\(shown)")
        for (beacon, day) in sorted.prefix(maximum) {
            element("section", [("class", "beacon")]) { html in
                html.element("h3") { title(&$0, beacon) }
                html.strength(day)
                html.readings(day.readings, stream, beacon: beacon)
            }
        }
    }

    /// Adds how often and how strongly a beacon was heard.
    private mutating func strength(_ beacon: DayBeacon) {
        guard let range = beacon.strength?.range else { return }
        let sightings = Words.count(Int64(beacon.sightings), "sighting", "sightings")
        let (least, maximum) = (
            Words.decimal(range.lowerBound, 0), Words.decimal(range.upperBound, 0)
        )
        element(
            "p",
            [("class", "soft")],
            "\(beacon.kind), \(sightings), \(least) to \(maximum) dBm"
        )
    }
}
