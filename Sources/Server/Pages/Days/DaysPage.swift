// The page of a device's days: a year of each stream at a glance, and as a table.
import ServerBase
import ServerIndex

struct DaysPage {
    let device: String
    let names: KnownNames
    let days: [Day]
    let rows: [CoverageCalendar.Row]
    let now: Int64
    let note: String?

    private var ends: (first: String, last: String) {
        (days.first?.name ?? "", days.last?.name ?? "")
    }

    func html() -> HTML {
        let title = "\(names.title(device)), \(ends.first) to \(ends.last) – Waypost fleet"
        return .page(title, now: now, loads: [.script("/days.js")]) { html in
            html.element("h1") { $0.device(device, names, isLink: true) }
            html.element("p", "UTC days from \(ends.first) to \(ends.last)")
            html.note(note)
            ways(&html)
            guard !rows.isEmpty else {
                html.element("p", [("class", "soft")], "No data in this time.")
                return
            }
            html.element("h2", "Streams")
            html.coverageLegend()
            html.strips(rows, days, of: device)
            html.element("details") { table(&$0) }
        }
    }

    private func ways(_ html: inout HTML) {
        let this = Int(Day(of: now).name.prefix(4)) ?? 0
        let year = ends.first.hasSuffix("-01-01") ? Int(ends.first.prefix(4)) ?? this : this + 1
        let path = "/device/\(device)/days"
        html.element("nav", [("class", "ways screen"), ("aria-label", "Years")]) { html in
            html.element(
                "a",
                [("href", "\(path)?year=\(year - 1)")],
                (year > this ? "" : "← ") + "\(year - 1)"
            )
            if year < this {
                html.element("a", [("href", "\(path)?year=\(year + 1)")], "\(year + 1) →")
            }
            html.element("a", [("href", path)], "Last 365 days")
            let file = "\(path).csv?from=\(ends.first)&to=\(ends.last)"
            html.element("a", [("href", file), ("download", "")], "Download as CSV")
        }
    }

    /// Adds the same as text, newest first.
    private func table(_ html: inout HTML) {
        html.element("summary", "As a table")
        let titles = rows.map { StreamTitle.of($0.stream) }
        html.table(["UTC day"] + titles) { html in
            for day in days.reversed() {
                let cells = rows.map { $0.days[day.name] }
                guard cells.contains(where: { $0 != nil }) else { continue }
                html.element("tr") { html in
                    html.element("th", [("scope", "row")]) {
                        $0.element("a", [("href", day.address(of: device))], day.title)
                    }
                    for (title, cell) in zip(titles, cells) {
                        html.cell(title, cell) { $0.text($1.words) }
                    }
                }
            }
        }
    }
}
