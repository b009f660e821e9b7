// The data of a day and its gaps, as a strip for each stream.
import Host
import ServerBase
import ServerIndex

struct Timeline {
    private static let maxRows = 100
    private static let maxLosses = 50
    private static let slots = Day.milliseconds / IndexedPart.slot

    let day: Day
    /// For each stream: its slots, counted from 1970, and the records in each.
    let streams: [String: [Int64: Int64]]
    let now: Int64
    /// The spans that touch the day, in order.
    private let losses: [LossSpan]

    init(day: Day, streams: [String: [Int64: Int64]], losses: [LossSpan], now: Int64) {
        (self.day, self.streams, self.now) = (day, streams, now)
        self.losses = losses.filter { $0.to >= day.start && $0.from < day.end }.sorted {
            ($0.from, $0.words) < ($1.from, $1.words)
        }
    }

    var isEmpty: Bool { streams.isEmpty && losses.isEmpty }

    /// `more` adds something to a gap in the list.
    func draw(_ html: inout HTML, more: (inout HTML, LossSpan) -> Void) {
        legend(&html)
        html.raw(#"<table class="timeline"><thead><tr><th scope="col">Stream</th><th scope="col">"#)
        html.element("span", [("class", "hours")]) { html in
            for hour in stride(from: 0, through: 24, by: 6) { html.time(day.start(ofHour: hour)) }
        }
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

    /// Slots since the day's start, limited to the day.
    private func place(_ time: Int64) -> Double {
        let inDay = min(max(time - day.start, 0), Day.milliseconds)
        return Double(inDay) / Double(IndexedPart.slot)
    }

    /// Adds the strip of a title, which several streams may share.
    private func row(
        _ title: String,
        _ streams: [String],
        _ losses: [LossSpan],
        _ html: inout HTML
    ) {
        var counts: [Int64: Int64] = [:]
        for stream in streams { counts.merge(self.streams[stream] ?? [:]) { $0 + $1 } }
        let first = day.start / IndexedPart.slot
        let filled = (0..<Self.slots).filter { counts[first + $0] != nil }
        let words = words(counts, filled.count, losses)
        let strip: [HTML.Attribute] = [
            ("class", "strip"), ("viewBox", "0 0 \(Self.slots) 10"),
            ("preserveAspectRatio", "none"), ("role", "img"), ("aria-label", words),
        ]
        html.element("tr") { html in
            let wire = streams.joined(separator: ", ")
            html.element("th", [("scope", "row"), ("title", wire)], title)
            html.element("td") { html in
                html.element("svg", strip) { html in
                    html.element("title", words)
                    let spans = Dictionary(grouping: losses, by: \.kind)
                    for span in (spans[.down] ?? []) + (spans[.off] ?? []) { draw(span, &html) }
                    for run in Self.runs(filled) {
                        Self.rect("cover", Double(run.lowerBound), Double(run.upperBound), &html)
                    }
                    for span in spans[.loss] ?? [] { draw(span, &html) }
                    // The future is not a gap.
                    if now < day.end { Self.rect("later", place(now), Double(Self.slots), &html) }
                }
            }
        }
    }

    private func words(_ counts: [Int64: Int64], _ filled: Int, _ losses: [LossSpan]) -> String {
        let records = counts.values.reduce(0, +)
        let hours = Words.decimal(Double(filled) / 6, 1)
        let count = Words.count(records, "record", "records")
        let spans = losses.prefix(20).map {
            "\($0.words) from \(Words.second($0.from)) to \(Words.second($0.to)) UTC"
        }
        return (["\(count) in \(hours) h of 24 h"] + spans).joined(separator: "; ")
    }

    private func draw(_ span: LossSpan, _ html: inout HTML) {
        let from = place(span.from)
        Self.rect(span.kind.rawValue, from, max(from + 0.5, place(span.to)), &html)
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

    /// Merges consecutive slots into ranges.
    private static func runs(_ slots: [Int64]) -> [Range<Int64>] {
        var runs: [Range<Int64>] = []
        for slot in slots {
            if let last = runs.last, last.upperBound == slot {
                runs[runs.count - 1] = last.lowerBound..<slot + 1
            } else {
                runs.append(slot..<slot + 1)
            }
        }
        return runs
    }
}
