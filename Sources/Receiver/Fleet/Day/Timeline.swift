// The data of a day and its gaps: a strip for each stream, and one for each kind of loss.
import Host

/// A time span of lost records, or of a source that was lost.
struct LossSpan {
    /// The stream or source that was affected.
    var label: String
    var words: String
    /// Milliseconds since 1970.
    var from: Int64
    var to: Int64

    /// Returns the spans that events report; a source not yet recovered is lost until `now`.
    static func spans(_ events: [EventRow], now: Int64) -> [LossSpan] {
        let ends = ends(of: events)
        return events.enumerated().compactMap { index, event in
            let detail = FlatRecord(event.detail)
            func time(_ name: String) -> Int64? {
                detail.text(name).flatMap { WallTime(rfc3339: $0) }?.milliseconds
            }
            switch event.kind {
            case "gap", "evicted":
                guard let from = time("from"), let to = time("to"), from <= to else { return nil }
                let count = detail.number("records").map { "\(Words.decimal($0, 0)) " } ?? ""
                let kind = detail.text("kind") ?? event.kind
                let label = detail.text("stream") ?? event.source
                let isOff = detail.text("state") == "off"
                let words = isOff ? "not running, as planned" : "\(count)lost (\(kind))"
                return LossSpan(label: label, words: words, from: from, to: to)
            case "source_recovered":
                guard let from = time("since"), let to = time("until") else { return nil }
                return LossSpan(label: event.source, words: "source lost", from: from, to: to)
            case "source_lost":
                let from = time("since") ?? event.time
                return LossSpan(
                    label: event.source,
                    words: "source lost",
                    from: from,
                    to: max(from, ends[index] ?? now)
                )
            default: return nil
            }
        }
    }

    /// Returns the end of each `source_lost` by index: its recovery (which has its own span) or the
    /// next start.
    ///
    /// `events`: in order of time. One pass, however many there are.
    private static func ends(of events: [EventRow]) -> [Int: Int64] {
        var ends: [Int: Int64] = [:]
        var started: Int64?
        var recovered: [String: Int64] = [:]
        for (index, event) in events.enumerated().reversed() {
            switch event.kind {
            case "started": started = event.time
            case "source_recovered": recovered[event.source] = event.time
            case "source_lost":
                ends[index] = [started, recovered[event.source]].compactMap { $0 }.min()
            default: break
            }
        }
        return ends
    }
}

struct Timeline {
    private static let mostStreams = 100
    private static let mostLosses = 50
    private static let slots = Day.milliseconds / IndexedPart.slot

    let day: Day
    /// For each stream: its slots, counted from 1970, and the records in each.
    let streams: [String: [Int64: Int64]]
    let losses: [LossSpan]
    let now: Int64

    func draw(_ html: inout HTML) {
        let first = day.start / IndexedPart.slot
        html.raw(
            """
            <table class="timeline"><thead><tr><th scope="col">Stream</th><th scope="col"><span class="hours">
            <span>0 h</span><span>6 h</span><span>12 h</span><span>18 h</span><span>24 h</span></span></th></tr>
            </thead><tbody>
            """
        )
        for (stream, slots) in streams.sorted(by: { $0.key < $1.key }).prefix(
            Self.mostStreams
        ) {
            let filled = (0..<Self.slots).filter { slots[first + $0] != nil }
            let hours = Words.decimal(Double(filled.count) / 6, 1)
            let records = filled.reduce(0) { $0 + (slots[first + $1] ?? 0) }
            let count = Words.count(records, "record", "records")
            row(&html, stream, "\(count) in \(hours) h of 24 h") { html in
                for run in Self.runs(filled) {
                    rect(&html, "cover", Double(run.lowerBound), Double(run.upperBound))
                }
            }
        }
        let inDay = losses.filter { $0.to >= day.start && $0.from < day.end }
        let lost = Dictionary(grouping: inDay, by: \.label).sorted { $0.key < $1.key }
        for (label, spans) in lost.prefix(Self.mostLosses) {
            let words = spans.map {
                "\($0.words) from \(Words.second($0.from)) to \(Words.second($0.to))"
            }
            row(&html, "Lost: \(label)", words.prefix(20).joined(separator: "; ")) { html in
                for span in spans {
                    rect(
                        &html,
                        "loss",
                        place(span.from),
                        max(place(span.from) + 0.5, place(span.to))
                    )
                }
            }
        }
        html.raw("</tbody></table>")
        html.more(streams.count - Self.mostStreams, "stream", "streams")
        html.more(lost.count - Self.mostLosses, "source of losses", "sources of losses")
    }

    /// Slots since the day's start, limited to the day.
    private func place(_ time: Int64) -> Double {
        let inDay = min(max(time - day.start, 0), Day.milliseconds)
        return Double(inDay) / Double(IndexedPart.slot)
    }

    private func row(
        _ html: inout HTML,
        _ label: String,
        _ words: String,
        _ body: (inout HTML) -> Void
    ) {
        html.element("tr") { html in
            html.element("th", [("scope", "row")], label)
            html.element("td") { html in
                html.strip("strip", Int(Self.slots), 10, label: words) { html in
                    html.element("title", words)
                    body(&html)
                    // The future is not a gap.
                    if now < day.end { rect(&html, "later", place(now), Double(Self.slots)) }
                }
            }
        }
    }

    private func rect(_ html: inout HTML, _ kind: String, _ from: Double, _ to: Double) {
        let attributes: [HTML.Attribute] = [
            ("class", kind), ("x", Words.decimal(from, 2)), ("width", Words.decimal(to - from, 2)),
            ("height", "10"),
        ]
        html.element("rect", attributes, "")
    }

    /// Merges consecutive slots into ranges.
    static func runs(_ slots: [Int64]) -> [Range<Int64>] {
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
