// The page of the latest records of a stream's day, as received.
import Host

struct RecordsPage {
    private static let most = 200
    /// Bytes read from the end of the file.
    private static let tail: Int64 = 1 << 20

    private let device: String
    private let day: Day
    private let stream: String
    /// Newest first.
    private var records: [FlatRecord] = []
    private var isWhole = true

    /// Nil if the file does not exist.
    init?(_ path: String, device: String, day: Day, stream: String) throws {
        (self.device, self.day, self.stream) = (device, day, stream)
        guard let file = try LineFile.open(path) else { return nil }
        let size = try file.size()
        let start = max(0, size - Self.tail)
        try file.forEachLine(from: start, to: size) { line in
            if let line, line.identity != nil { records.append(FlatRecord(line)) }
        }
        isWhole = start == 0 && records.count <= Self.most
        records = records.suffix(Self.most).reversed()
    }

    func html(now: Int64) -> HTML {
        .page("\(device), \(day.name), \(stream) – Waypost fleet", now: now) { html in
            html.heading(device, day, stream)
            if !isWhole {
                let count = Words.count(Int64(records.count), "record", "records")
                html.element("p", [("class", "soft")], "The last \(count) of the day.")
            }
            html.raw(
                """
                <div class="wide"><table class="fold"><thead><tr><th scope="col">Time (UTC)</th>
                <th scope="col">Record</th></tr></thead><tbody>
                """
            )
            for record in records { row(record, &html) }
            html.raw("</tbody></table></div>")
        }
    }

    private func row(_ record: FlatRecord, _ html: inout HTML) {
        html.element("tr") { html in
            html.element("th", [("scope", "row")]) { html in
                let time = record.text("timestamp") ?? record.text("timestamp_start") ?? ""
                html.text(String(time.prefix(40)))
            }
            html.element("td") { html in
                html.members(record, without: ["id", "timestamp", "timestamp_start"])
            }
        }
    }
}

extension HTML {
    /// Lists names with their values.
    mutating func members(_ record: FlatRecord, without hidden: Set<String> = []) {
        let members = record.members.filter { !hidden.contains($0.name) }
        guard !members.isEmpty else { return }
        element("ul", [("class", "detail")]) { html in
            for (name, value) in members {
                let (words, unit) = value.isNumber ? Quantities.split(name) : (name.asWords, "")
                html.raw("<li>")
                html.element("span", "\(words) ")
                html.text("\(value.words) \(unit)")
                html.raw("</li>")
            }
        }
    }
}
