// The page of all devices, those in trouble first.
import ServerArchive
import ServerBase
package import ServerIndex

struct OverviewPage {
    /// The maximum number of devices whose names are shown on the map.
    private static let maxNames = 25
    /// The maximum number of devices on the map.
    private static let maxDots = 500

    /// All devices, whatever the filter.
    let devices: [DeviceView]
    let names: KnownNames
    let filter: DeviceFilter
    let now: Int64
    /// A warning about the data; nil if there is none.
    let note: String?
    let libraries: WebLibraries
    let isEditor: Bool
    /// Returns the last days of a device, the worst of its sources in each.
    let days: (DeviceView) -> [DayCoverage?]
    /// Returns what a device's programs have recognised today.
    let detections: (String) -> [String: [String: DetectedSpecies]]

    func html() -> HTML {
        .page(title, now: now, isLive: true, loads: libraries.map) { html in
            html.element("h1", "Devices")
            html.note(note)
            if isEditor {
                html.raw(#"<p class="screen"><a href="/devices/new">New device</a></p>"#)
            }
            guard !devices.isEmpty else {
                html.element("p", "No device has sent anything or enrolled yet.")
                return
            }
            if hasMap { html.missing(libraries) }
            counts(&html)
            filter.draw(&html, devices: devices, names)
            let shown = devices.filter { filter.fits($0, names.devices[$0.id]) }
            guard !shown.isEmpty else {
                html.element("p", "No device fits this search.")
                return
            }
            let page = ListPage(shown, number: filter.page)
            table(page.entries, &html)
            page.links(&html, address: filter.address(ofPage:))
            map(shown, &html)
        }
    }

    var hasMap: Bool { devices.contains { $0.vitals.place != nil } }

    private var title: String {
        let urgent = devices.filter { $0.level >= .critical }.count
        return (urgent > 0 ? "(\(urgent)) " : "") + "Waypost fleet"
    }

    private func counts(_ html: inout HTML) {
        html.element("ul", [("class", "count")]) { html in
            for level in DeviceLevel.allCases.reversed() {
                let count = devices.filter { $0.level == level }.count
                guard count > 0 else { continue }
                html.raw("<li>")
                html.state(level, "\(count) \(level.name)")
                html.raw("</li>")
            }
        }
    }

    // MARK: The table

    private func table(_ devices: [DeviceView], _ html: inout HTML) {
        html.raw(
            """
            <div class="wide"><table class="fold"><thead><tr><th scope="col">Device</th><th scope="col">State</th>
            <th scope="col">Last heard</th><th scope="col">14 days (UTC)</th><th scope="col">Last position</th><th scope="col">Supply</th>
            <th scope="col">Storage</th><th scope="col">Waiting</th><th scope="col" class="number">Lost, 24 h</th>
            <th scope="col">Version</th></tr></thead><tbody>
            """
        )
        for device in devices { row(device, &html) }
        html.raw("</tbody></table></div>")
        html.coverageLegend()
        html.raw(
            #"<p class="screen"><a href="/days.csv" download>Download the last 14 days as CSV</a></p>"#
        )
    }

    private func row(_ device: DeviceView, _ html: inout HTML) {
        html.element("tr") { html in
            html.element("th", [("scope", "row")]) { $0.device(device.id, names, isLink: true) }
            html.element("td") { $0.stateAndReasons(of: device) }
            html.cell("Last heard", device.lastSeen) { html, last in
                html.time(last)
                html.ago(last, now: now)
                html.detections(today: detections(device.id))
            }
            html.element("td", [("data-label", "Last 14 days")]) { $0.strip(days(device)) }
            html.cell("Last position", device.vitals.place) { $0.place($1, now: now) }
            html.cell("Supply", device.supply) { $0.reading($1, now: now) }
            html.cell("Storage", device.freeStorage) { $0.reading($1, now: now) }
            html.element("td", [("data-label", "Waiting")]) { $0.waiting(of: device) }
            let lost: [HTML.Attribute] = [("class", "number"), ("data-label", "Lost, 24 h")]
            html.element("td", lost, device.lost > 0 ? Words.count(device.lost) : "")
            html.cell("Version", device.contact?.version) { $0.text($1) }
        }
    }

    // MARK: The map

    private func map(_ devices: [DeviceView], _ html: inout HTML) {
        let all = devices.compactMap { device in device.vitals.place.map { (device, $0) } }
        let placed = all.prefix(Self.maxDots)
        guard let map = PlaceMap(placed.map(\.1)) else { return }
        html.raw("<h2>Last positions</h2>")
        let count = Words.count(Int64(placed.count), "device", "devices")
        let box: [HTML.Attribute] = [
            ("data-devices", ""), ("data-tiles", libraries.tiles?.text ?? ""),
        ]
        html.element("div", box) { html in
            map.draw(&html, label: "The last positions of \(count)") { html in
                // Devices in trouble are drawn last, on top.
                for (device, place) in placed.reversed() {
                    dot(device, place, on: map, isNamed: placed.count <= Self.maxNames, &html)
                }
            }
        }
        html.more(all.count - Self.maxDots, "position", "positions")
    }

    private func dot(
        _ device: DeviceView,
        _ place: Track.Fix,
        on map: PlaceMap,
        isNamed: Bool,
        _ html: inout HTML
    ) {
        let title = names.title(device.id)
        let link: [HTML.Attribute] = [
            ("href", "/device/\(device.id)"), ("class", device.level.name),
            ("aria-label", "\(title), \(device.level.name)"),
            ("data-at", "\(place.latitude),\(place.longitude)"),
        ]
        let at = (x: map.x(place.longitude), y: map.y(place.latitude))
        html.element("a", link) { html in
            let (x, y) = (PlaceMap.text(at.x), PlaceMap.text(at.y))
            html.element("circle", [("cx", x), ("cy", y), ("r", "6")]) {
                $0.element("title", "\(title), \(device.level.name)")
            }
            guard isNamed else { return }
            // The label goes to the side with more space.
            let isRight = at.x > 400
            let attributes: [HTML.Attribute] = [
                ("class", "name"), ("x", PlaceMap.text(at.x + (isRight ? -10 : 10))), ("y", y),
                ("dominant-baseline", "middle"), ("text-anchor", isRight ? "end" : "start"),
            ]
            html.element("text", attributes, String(title.prefix(24)))
        }
    }
}

extension Day {
    /// Returns the address of a device's page of this UTC day, whatever the browser's zone is.
    func address(of device: String) -> String {
        "/device/\(device)/\(name)?zone=\(TimeZoneRules.utc.name)"
    }
}

extension HTML {
    /// Adds a table that narrow screens show as a list.
    mutating func table(_ columns: [String], _ rows: (inout HTML) -> Void) {
        raw(#"<div class="wide"><table class="fold"><thead><tr>"#)
        for column in columns { element("th", [("scope", "col")], column) }
        raw("</tr></thead><tbody>")
        rows(&self)
        raw("</tbody></table></div>")
    }

    /// Adds a table cell that is empty if the value is unknown; narrow screens show the label.
    mutating func cell<Value>(
        _ label: String,
        _ value: Value?,
        _ body: (inout HTML, Value) -> Void
    ) {
        element("td", [("data-label", label)]) { html in
            if let value { body(&html, value) }
        }
    }

    package mutating func state(_ level: DeviceLevel, _ words: String) {
        element("span", [("class", "state \(level.name)")], words)
    }

    /// Adds what a device holds, or what it held when it reported that last.
    fileprivate mutating func waiting(of device: DeviceView) {
        if device.health == nil, let last = device.lastWaiting {
            text(last.words)
            element("span", [("class", "soft")], ", as reported at ")
            return time(last.time)
        }
        text(device.waiting ?? "")
        guard device.waiting != nil, let oldest = device.health?.oldestPending else { return }
        element("span", [("class", "soft")], ", the oldest of ")
        time(oldest)
    }

    mutating func stateAndReasons(of device: DeviceView) {
        state(device.level, device.level.name)
        guard !device.reasons.isEmpty else { return }
        element("ul", [("class", "reasons")]) { html in
            for reason in device.reasons { html.element("li", reason) }
        }
    }

    /// Adds a position with a link to OpenStreetMap.
    package mutating func place(_ place: Track.Fix, now: Int64) {
        self.place(place.latitude, place.longitude)
        age(place.time, now: now)
    }

    mutating func place(_ latitude: Double, _ longitude: Double) {
        let (latitude, longitude) = (Words.decimal(latitude, 5), Words.decimal(longitude, 5))
        let address =
            "https://www.openstreetmap.org/?mlat=\(latitude)&mlon=\(longitude)#map=16/\(latitude)/\(longitude)"
        let link: [Attribute] = [
            ("class", "place"), ("href", address), ("rel", "noreferrer noopener"),
            ("title", "On OpenStreetMap"),
        ]
        element("a", link, "\(latitude), \(longitude)")
    }

    /// Adds a reading that a device reported.
    package mutating func reading(_ reading: Vitals.Reading, now: Int64) {
        text(reading.text)
        age(reading.time, now: now)
    }

    /// Adds an age if it is more than an hour.
    package mutating func age(_ time: Int64, now: Int64) {
        if now - time > 3_600_000 { ago(time, now: now) }
    }

    /// Adds the number of entries that are not shown, if any.
    package mutating func more(_ count: Int, _ one: String, _ many: String) {
        guard count > 0 else { return }
        let words = Words.count(Int64(count), "more \(one) is", "more \(many) are")
        element("p", [("class", "soft")], "\(words) not shown.")
    }

    mutating func ago(_ time: Int64, now: Int64) {
        raw(#" <br><span class="soft">"#)
        text("\(Words.span(seconds: (now - time) / 1000)) ago")
        raw("</span>")
    }
}
