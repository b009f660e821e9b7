// The page of one device: its state, its stored data, and its events.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

struct DevicePage {
    static let eventsOnAPage = 100
    private static let maxDaysAhead = 10
    private static let maxStreams = 100

    let device: DeviceView
    let streams: [String: (records: Int64, first: Int64?, last: Int64?)]
    /// The days with records that are ahead of this server's clock, newest first.
    let ahead: [(name: String, records: Int64)]
    /// The last year.
    let calendar: CoverageCalendar?
    /// One more than is shown, if there are more.
    let events: [EventRow]
    /// True if these are the newest events.
    let isFirst: Bool
    /// The newest version of its settings; nil if it was never given any.
    let settings: DeviceSettings?
    let names: KnownNames
    let isEditor: Bool
    let now: Int64
    let note: String?

    func html() -> HTML {
        .page(
            "\(names.title(device.id)) – Waypost fleet",
            now: now,
            isLive: isFirst,
            loads: [.script("/days.js")]
        ) { html in
            html.element("h1") { $0.device(device.id, names) }
            remarks(&html)
            html.note(note)
            if isFirst {
                html.element("div") { $0.stateAndReasons(of: device) }
                facts(&html)
                streamTable(&html)
                days(&html)
            }
            eventTable(&html)
        }
    }

    /// Adds the note about the device, and links to its report and, for an editor, to its forms.
    private func remarks(_ html: inout HTML) {
        let note = names.devices[device.id]?.note ?? ""
        if !note.isEmpty { html.element("p", note) }
        html.element("p", [("class", "screen")]) { html in
            html.element("a", [("href", "/device/\(device.id)/report")], "Report")
            guard isEditor else { return }
            html.text(" · ")
            let link: [HTML.Attribute] = [("href", "/device/\(device.id)/names")]
            html.element("a", link, "Edit label, group and note")
            html.text(" · ")
            html.element("a", [("href", "/device/\(device.id)/settings")], "Change settings")
        }
    }

    // MARK: Facts

    private func facts(_ html: inout HTML) {
        html.element("dl", [("class", "facts")]) { html in
            fact(&html, "Last heard", device.lastSeen) { html, last in
                html.time(last, seconds: true)
                html.text(" (\(Words.span(seconds: (now - last) / 1000)) ago)")
            }
            fact(&html, "First heard", device.contact?.firstSeen.milliseconds) { $0.time($1) }
            fact(&html, "Syncs every", Words.span(seconds: device.interval)) { $0.text($1) }
            fact(&html, "Last position", device.vitals.place) { $0.place($1, now: now) }
            fact(&html, "Supply", device.supply) { $0.reading($1, now: now) }
            fact(&html, "Storage", device.freeStorage) { $0.reading($1, now: now) }
            fact(&html, "Waiting on the device", device.waiting) { $0.text($1) }
            fact(&html, "Oldest waiting record", device.health?.oldestPending) { $0.time($1) }
            fact(&html, "Lost in the last day", Words.count(device.lost)) { $0.text($1) }
            for detail in device.health?.details ?? [] {
                fact(&html, detail.name, detail.text) { $0.text($1) }
            }
            fact(&html, "Clock", device.contact?.clock) { $0.text($1) }
            fact(&html, "Version", device.contact?.version) { $0.text($1) }
            fact(&html, "Settings wanted", settings) { html, settings in
                html.text("version \(settings.version), ")
                html.state(of: settings)
            }
            fact(&html, "Settings in force", settings?.inForceWords) { $0.text($1) }
            fact(&html, "Enrolled", device.token?.enrolled) { $0.time($1 * 1000) }
            fact(&html, "Token replaced", device.token?.replaced) { $0.time($1 * 1000) }
            fact(&html, "Token revoked", device.token?.revoked) { $0.time($1 * 1000) }
        }
    }

    private func fact<Value>(
        _ html: inout HTML,
        _ name: String,
        _ value: Value?,
        _ body: (inout HTML, Value) -> Void
    ) {
        guard let value, (value as? String)?.isEmpty != true else { return }
        html.raw("<div>")
        html.element("dt", name)
        html.element("dd") { body(&$0, value) }
        html.raw("</div>")
    }

    // MARK: Streams

    private func streamTable(_ html: inout HTML) {
        html.raw(
            """
            <h2>Streams</h2><div class="wide"><table class="fold"><thead><tr><th scope="col">Stream</th>
            <th scope="col" class="number">Records</th><th scope="col">First record</th>
            <th scope="col">Newest record</th><th scope="col">Last batch</th></tr></thead><tbody>
            """
        )
        let contacts = device.contact?.streams ?? [:]
        let names = Set(contacts.keys).union(streams.keys).sorted()
        for stream in names.prefix(Self.maxStreams) {
            let (contact, kept) = (contacts[stream], streams[stream])
            html.element("tr") { html in
                html.element("th", [("scope", "row"), ("title", stream)]) { html in
                    guard let last = kept?.last else { return html.text(StreamTitle.of(stream)) }
                    let newest = "/device/\(device.id)/\(Day(of: last).name)/\(stream)"
                    html.element("a", [("href", newest)], StreamTitle.of(stream))
                }
                html.element(
                    "td",
                    [("class", "number"), ("data-label", "Records")],
                    Words.count(contact?.records ?? kept?.records ?? 0)
                )
                html.cell("First record", kept?.first) { $0.time($1) }
                html.cell("Newest record", kept?.last) { $0.time($1) }
                html.cell("Last batch", contact?.lastSeen.milliseconds) { $0.time($1) }
            }
        }
        html.raw("</tbody></table></div>")
        html.more(names.count - Self.maxStreams, "stream", "streams")
    }

    private func days(_ html: inout HTML) {
        html.element("h2", "Days (UTC)")
        if let calendar, !calendar.rows.isEmpty {
            html.coverageLegend()
            html.strips(calendar.rows, calendar.range, of: device.id)
        }
        html.element("p", [("class", "screen")]) {
            $0.element(
                "a",
                [("href", "/device/\(device.id)/days")],
                "Days as a table, CSV, other years"
            )
        }
        guard !ahead.isEmpty else { return }
        html.element("h2", "Days ahead of this server's clock")
        html.raw(#"<ul class="days">"#)
        for day in ahead.suffix(Self.maxDaysAhead) {
            html.raw("<li>")
            let link = Day(day.name)?.address(of: device.id) ?? ""
            html.element("a", [("href", link)], day.name)
            html.text(" ")
            let records = Words.count(day.records, "record", "records")
            html.element("span", [("class", "soft")], records)
            html.raw("</li>")
        }
        html.raw("</ul>")
    }

    // MARK: Events

    private func eventTable(_ html: inout HTML) {
        html.element("h2", isFirst ? "Events" : "Older events")
        guard !events.isEmpty else {
            html.element("p", [("class", "soft")], isFirst ? "No events yet." : "No older events.")
            return
        }
        let audio = device.facts.contents.filter { $0.value == .audio }.keys.min()
        html.table(["Time (UTC)", "Event", "Source", "Detail"]) { html in
            for event in events.prefix(Self.eventsOnAPage) { row(event, audio, &html) }
        }
        html.element("p", [("class", "screen")]) { html in
            if !isFirst { html.element("a", [("href", "/device/\(device.id)")], "Newest events") }
            guard events.count > Self.eventsOnAPage else { return }
            html.text(" ")
            let last = events[Self.eventsOnAPage - 1]
            let older = "/device/\(device.id)/events/\(last.time)/\(last.id)"
            html.element("a", [("href", older)], "Older events")
        }
    }

    /// Adds a link to the sound of a point in time while a stream with audio has records.
    private func sound(at time: Int64, _ stream: String?, _ html: inout HTML) {
        guard let stream, let held = streams[stream], let first = held.first, let last = held.last,
            (first...max(first, last)).contains(time)
        else { return }
        html.sound(at: time, stream, device.id, Day(of: time))
    }

    private func row(_ event: EventRow, _ audio: String?, _ html: inout HTML) {
        html.element("tr") { html in
            html.element("td") { $0.time(event.time, seconds: true) }
            html.element("th", [("scope", "row")], event.kind.asWords)
            html.element("td", [("data-label", "Source")], event.source)
            html.element("td") { html in
                if event.detail.isEmpty { html.text("(too long to show)") }
                html.members(FlatRecord(event.detail))
                sound(at: event.time, audio, &html)
            }
        }
    }
}

extension String {
    /// Makes `source_lost` readable by replacing underscores.
    var asWords: String { String(map { $0 == "_" ? " " : $0 }) }
}
