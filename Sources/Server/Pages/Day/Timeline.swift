// The data of a span of days and its gaps, as a strip for each stream.
import Host
import ServerBase
import ServerIndex

struct Timeline {
    private static let maxRows = 100
    private static let maxLosses = 50
    /// The maximum number of dates below the strips; phones show every other one.
    private static let maxDates = 8

    let span: LocalSpan
    /// For each stream: its cells with records, of `span.step` slots, counted from the first.
    let streams: [String: [Int64: TimelineCell]]
    let now: Int64
    /// The gaps that touch the span, in order.
    private let losses: [LossSpan]

    init(
        span: LocalSpan,
        streams: [String: [Int64: TimelineCell]],
        losses: [LossSpan],
        now: Int64
    ) {
        (self.span, self.streams, self.now) = (span, streams, now)
        let time = span.time
        self.losses = losses.filter {
            $0.to >= time.lowerBound && $0.from < time.upperBound
        }.sorted { ($0.from, $0.words) < ($1.from, $1.words) }
    }

    var isEmpty: Bool { streams.isEmpty && losses.isEmpty }

    /// `more` adds something to a gap in the list.
    func draw(_ html: inout HTML, more: (inout HTML, LossSpan) -> Void) {
        legend(&html)
        html.raw(#"<table class="timeline"><thead><tr><th scope="col">Stream</th><th scope="col">"#)
        axis(&html)
        html.raw("</th></tr></thead><tbody>")
        let named = Dictionary(grouping: streams.keys.sorted(), by: StreamTitle.of)
        let lost = Dictionary(grouping: losses) { $0.label.map(StreamTitle.ofLoss) ?? "" }
        let titles = Set(named.keys).union(lost.keys).subtracting([""]).sorted()
        for title in titles.prefix(Self.maxRows) {
            row(title, named[title] ?? [], (lost[""] ?? []) + (lost[title] ?? []), &html)
        }
        if titles.isEmpty { row("Gateway", [], losses, &html) }
        html.raw("</tbody></table>")
        html.more(titles.count - Self.maxRows, "row", "rows")
        list(&html, more)
    }

    /// Formats `Mon 10-05`.
    private static func short(_ day: Day) -> String {
        "\(day.title.prefix(3)) \(day.name.dropFirst(5))"
    }

    /// Labels the time: hours of one day, dates of several.
    private func axis(_ html: inout HTML) {
        let (first, count) = (span.days.first, span.days.count)
        let labels =
            count == 1
            ? [0, 6, 12, 18, 24].map { hour in
                (span.zone.time(first, hours: hour), "\(Words.twoDigits(hour)):00")
            }
            : stride(from: 0, to: count, by: (count - 1) / Self.maxDates + 1).compactMap {
                first.adding($0).map { (span.zone.time($0), Self.short($0)) }
            }
        let (start, end) = (span.time.lowerBound, span.time.upperBound - 1)
        let label = "\(span.zone.minute(start)) to \(span.zone.minute(end)), \(span.zone.title)"
        let axis: [HTML.Attribute] = [("class", "hours"), ("role", "img"), ("aria-label", label)]
        html.element("svg", axis) { html in
            for (time, text) in labels {
                let part = Double(time - start) / Double(span.length)
                let anchor = part == 0 || count > 1 ? "start" : part == 1 ? "end" : "middle"
                let place = "\(Words.decimal(100 * part, 3))%"
                html.element("text", [("x", place), ("y", "1em"), ("text-anchor", anchor)], text)
            }
        }
    }

    private func legend(_ html: inout HTML) {
        let kinds =
            [("cover", "received")]
            + LossSpan.Kind.allCases.reversed().map { ($0.rawValue, $0.title) }
        html.element("ul", [("class", "legend")]) { html in
            for (kind, title) in kinds {
                html.raw("<li>")
                html.element("svg", [("viewBox", "0 0 20 10"), ("aria-hidden", "true")]) {
                    Self.rect(kind, 0, 20, &$0)
                }
                html.text(" \(title)")
                html.raw("</li>")
            }
        }
    }

    /// Lists the gaps as text, for those who see no colours or cannot point at them.
    private func list(_ html: inout HTML, _ more: (inout HTML, LossSpan) -> Void) {
        guard !losses.isEmpty else { return }
        html.element("details") { html in
            html.element(
                "summary",
                Words.count(Int64(losses.count), "gap or pause", "gaps and pauses")
            )
            html.raw("<ul>")
            for loss in losses.prefix(Self.maxLosses) {
                html.element("li") { html in
                    html.text("\(loss.label.map(StreamTitle.ofLoss) ?? "All"): \(loss.words), ")
                    html.time(loss.from, seconds: true)
                    html.text(" to ")
                    html.time(loss.to, seconds: true)
                    more(&html, loss)
                }
            }
            html.raw("</ul>")
            html.more(losses.count - Self.maxLosses, "gap", "gaps")
        }
    }

    /// Milliseconds of a cell.
    private var cell: Int64 { span.step * IndexedPart.slot }

    /// Cells since the start of the span, limited to it.
    private func place(_ time: Int64) -> Double {
        let inSpan = min(max(time, span.time.lowerBound), span.time.upperBound)
        return Double(inSpan - span.time.lowerBound) / Double(cell)
    }

    /// Adds the strip of a title, which several streams may share.
    private func row(
        _ title: String,
        _ streams: [String],
        _ losses: [LossSpan],
        _ html: inout HTML
    ) {
        let cells = streams.map { self.streams[$0] ?? [:] }
        let filled = Set(cells.flatMap(\.keys)).sorted()
        let words = words(cells.flatMap(\.values), losses)
        let end = Words.decimal(place(span.time.upperBound), 2)
        let strip: [HTML.Attribute] = [
            ("class", "strip"), ("viewBox", "0 0 \(end) 10"),
            ("preserveAspectRatio", "none"), ("role", "img"), ("aria-label", words),
        ]
        html.element("tr") { html in
            let wire = streams.joined(separator: ", ")
            html.element("th", [("scope", "row"), ("title", wire)], title)
            html.element("td") { html in
                html.element("svg", strip) { html in
                    html.element("title", words)
                    let kinds = Dictionary(grouping: losses, by: \.kind)
                    for kind in [LossSpan.Kind.down, .off] { draw(kinds[kind] ?? [], &html) }
                    cover(filled, &html)
                    draw(kinds[.loss] ?? [], &html)
                    // The future is not a gap.
                    guard now < span.time.upperBound else { return }
                    Self.rect("later", place(now), place(span.time.upperBound), &html)
                }
            }
        }
    }

    private func words(_ cells: [TimelineCell], _ losses: [LossSpan]) -> String {
        let zone = span.zone
        let records = cells.reduce(0) { $0 + $1.records }
        let slots = cells.reduce(0) { $0 + $1.slots }
        let hours = Words.decimal(Double(slots) / 6, 1)
        let count = Words.count(records, "record", "records")
        let all = Double(span.length) / 3_600_000
        let whole = Words.decimal(all, all == all.rounded() ? 0 : 1)
        let spans = losses.prefix(20).map {
            "\($0.words) from \(zone.second($0.from)) to \(zone.second($0.to)) \(zone.title)"
        }
        return (["\(count) in \(hours) h of \(whole) h"] + spans).joined(separator: "; ")
    }

    /// Draws gaps of one kind, in order; those that are hardly apart are drawn as one.
    private func draw(_ losses: [LossSpan], _ html: inout HTML) {
        var drawn: [(from: Double, to: Double)] = []
        for loss in losses.sorted(by: { $0.from < $1.from }) {
            let from = place(loss.from)
            let to = max(from + 0.5, place(loss.to))
            if let last = drawn.last, from - last.to < 0.25 {
                drawn[drawn.count - 1].to = max(last.to, to)
            } else {
                drawn.append((from, to))
            }
        }
        for (from, to) in drawn { Self.rect(losses[0].kind.rawValue, from, to, &html) }
    }

    /// Draws the cells with records; slots may begin after the span does.
    private func cover(_ filled: [Int64], _ html: inout HTML) {
        let start = IndexedPart.slots(in: span.time).lowerBound * IndexedPart.slot
        for run in Self.runs(filled) {
            let from = place(start + run.lowerBound * cell)
            Self.rect("cover", from, place(start + run.upperBound * cell), &html)
        }
    }

    /// Adds a rectangle; its height depends on its kind, so that kinds differ by more than colour.
    private static func rect(_ kind: String, _ from: Double, _ to: Double, _ html: inout HTML) {
        let (y, height) = kind == "down" ? ("4", "2") : kind == "off" ? ("6", "4") : ("0", "10")
        let attributes: [HTML.Attribute] = [
            ("class", kind), ("x", Words.decimal(from, 2)), ("width", Words.decimal(to - from, 2)),
            ("y", y), ("height", height),
        ]
        html.element("rect", attributes, "")
    }

    /// Merges consecutive cells into ranges.
    private static func runs(_ cells: [Int64]) -> [Range<Int64>] {
        var runs: [Range<Int64>] = []
        for cell in cells {
            if let last = runs.last, last.upperBound == cell {
                runs[runs.count - 1] = last.lowerBound..<cell + 1
            } else {
                runs.append(cell..<cell + 1)
            }
        }
        return runs
    }
}
