// Draws the days of streams as strips: a cell per UTC day.
import ServerBase
import ServerIndex

extension HTML {
    /// Adds the legend of all strips of a page, with the patterns that fill them.
    mutating func coverageLegend() {
        raw(
            """
            <svg class="patterns" aria-hidden="true"><pattern id="failed" width="1" height="2.5" patternUnits="userSpaceOnUse">
            <path class="failed" d="M0 2.5V1L1 0V1.5Z"/></pattern><pattern id="not_here_yet" width="1" height="2.5" patternUnits="userSpaceOnUse">
            <path class="waiting" d="M0 0H1V1.25H0Z"/></pattern><pattern id="lost" width="1" height="2.5" patternUnits="userSpaceOnUse">
            <path class="failed" d="M0 0H.5V1.25H1V2.5H.5V1.25H0Z"/></pattern><pattern id="missing" href="#lost"/></svg>
            """
        )
        element("ul", [("class", "legend cells")]) { html in
            for state in DayCoverage.State.allCases where state != .missing && state != .none {
                html.raw(
                    #"<li><svg viewBox="0 0 3 10" preserveAspectRatio="none" aria-hidden="true">"#
                )
                for x in 0..<3 { html.part(state, at: x, 1, 0, 10) }
                html.raw("</svg>")
                html.text(state == .lost ? " lost or missing" : " \(state.title)")
                html.raw("</li>")
            }
        }
    }

    /// Adds a part of a cell.
    ///
    /// Each state has its shape or pattern, because colours are not enough for everybody, nor on
    /// paper.
    private mutating func part(
        _ state: DayCoverage.State,
        at x: Int,
        _ days: Int,
        _ y: Double,
        _ height: Double
    ) {
        let (y, height) = state == .scheduledOff ? (7, 3) : (y, height)
        let isPattern = [.failed, .waiting, .lost, .missing].contains(state)
        let look: Attribute =
            isPattern ? ("fill", "url(#\(state.rawValue))") : ("class", state.rawValue)
        let attributes: [Attribute] = [
            look, ("x", state == .off ? "\(x).35" : "\(x)"),
            ("width", state == .off ? "\(days - 1).3" : "\(days)"),
            ("y", Words.decimal(y, 0)), ("height", Words.decimal(height, 0)),
        ]
        element("rect", attributes, "")
    }

    /// Adds equal days as a column of their parts, the good ones at the bottom and each visible.
    private mutating func cell(_ parts: [DayCoverage.Part], at x: Int, days: Int = 1) {
        var (top, rest) = (10.0, parts.count)
        for part in parts where part.state != .none {
            rest -= 1
            let own = (part.share * 10).rounded()
            let height = rest == 0 ? top : min(max(2, own), top - Double(rest) * 2)
            top -= height
            self.part(part.state, at: x, days, top, height)
        }
    }

    /// Adds the strips of all rows by month, from the first day on; each cell leads to its day.
    mutating func strips(_ rows: [CoverageCalendar.Row], _ days: [Day], of device: String) {
        let known = days.drop { day in rows.allSatisfy { $0.days[day.name] == nil } }
        let months = Dictionary(grouping: known) { String($0.name.prefix(7)) }
            .sorted { $0.key < $1.key }
        for row in rows {
            let title = StreamTitle.of(row.stream)
            element("h3", [("title", row.stream)], title)
            let words = DayCoverage.words(known.compactMap { row.days[$0.name] })
            element("output", [("class", "hover soft"), ("aria-live", "off")], words)
            let strip: [Attribute] = [
                ("class", "months"), ("role", "group"), ("aria-label", title),
            ]
            element("div", strip) { html in
                let last = known.last { row.days[$0.name] != nil }
                for (month, days) in months {
                    html.month(month, days.compactMap { row.days[$0.name] }, last, device)
                }
            }
        }
    }

    /// Adds a month; the Tab key reaches the `last` day, the script's arrow keys the others.
    private mutating func month(
        _ month: String,
        _ days: [DayCoverage],
        _ last: Day?,
        _ device: String
    ) {
        raw("<div>")
        element("span", [("class", "soft")], month)
        raw(#"<svg viewBox="0 0 31 10" preserveAspectRatio="none">"#)
        for day in days {
            let address: Attribute = ("href", day.day.address(of: device))
            element("a", [address] + (day.day == last ? [] : [("tabindex", "-1")])) { html in
                html.element("title", "\(day.day.title): \(day.words)")
                let x = (Int(day.day.name.suffix(2)) ?? 1) - 1
                html.cell(day.parts, at: x)
                // A cell that is not filled takes the pointer, too.
                guard day.state != .recorded else { return }
                let all: [Attribute] = [
                    ("class", "hit"), ("x", "\(x)"), ("width", "1"), ("height", "10"),
                ]
                html.element("rect", all, "")
            }
        }
        raw("</svg></div>")
    }

    /// Adds a strip of a device's last days, the worst of its sources in each.
    mutating func strip(_ days: [DayCoverage?]) {
        guard let last = days.compactMap({ $0 }).last else { return }
        let words = DayCoverage.words(days.compactMap { $0 }) + "; \(last.day.name): \(last.words)"
        let box: [Attribute] = [
            ("class", "fortnight"), ("viewBox", "0 0 \(days.count) 10"),
            ("preserveAspectRatio", "none"), ("role", "img"), ("aria-label", words),
        ]
        element("svg", box) { html in
            html.element("title", words)
            let cells = days.map { $0?.parts ?? [] }
            var place = 0
            while place < cells.count {
                let end = cells[place...].firstIndex { $0 != cells[place] } ?? cells.count
                html.cell(cells[place], at: place, days: end - place)
                place = end
            }
        }
    }
}

extension DayCoverage.State {
    var title: String { self == .none ? "without records" : rawValue.asWords }
}

extension DayCoverage {
    /// Counts the days in each state: `57 days recorded, 1 failed`.
    static func words(_ days: [DayCoverage]) -> String {
        let counts = Dictionary(grouping: days, by: \.state).mapValues(\.count)
        return State.allCases.compactMap { state in
            counts[state].map { "\(Words.count(Int64($0), "day", "days")) \(state.title)" }
        }.joined(separator: ", ")
    }

    /// Hours in each state with the reason, and the records that are missing.
    var words: String {
        let blamed = [State.failed, .off, .unknown].first { length(of: $0) > 0 }
        var parts = Self.states.filter { length(of: $0) >= 180_000 }.map { state in
            let hours = Words.decimal(Double(length(of: state)) / 3_600_000, 1)
            let why = state == blamed && !reason.isEmpty ? " (\(reason))" : ""
            return "\(state.title) \(hours) h\(why)"
        }
        if parts.isEmpty {
            parts = [stored > 0 ? Words.count(stored, "record", "records") : state.title]
        }
        if let absence {
            let all = Words.count(made, "record", "records")
            let part = "\(Words.count(shortage)) of \(all) \(absence.title)"
            parts.append(made > 0 ? part : "some records \(absence.title)")
        }
        return parts.joined(separator: ", ")
    }
}
