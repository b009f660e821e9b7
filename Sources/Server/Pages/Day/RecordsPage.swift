// The pages of the records of a stream's day, as received.
import Host
import ServerBase
import ServerIndex

struct RecordsPage {
    /// The part of the records that a viewer asked for, by the query.
    struct Request {
        /// The place in the file before which records are shown; nil for the newest.
        let before: Int64?
        /// A beacon's id, address, or a part of its label; "" for all records.
        let beacon: String
        /// "" for all records.
        let species: String

        init(_ query: [String: String]) {
            before = query["before"].flatMap { Int64($0) }
            beacon = trimmed(String((query["beacon"] ?? "").prefix(200)))
            species = query["species"] ?? ""
        }

        /// The fields of the query that choose records.
        var fields: [String] {
            [("beacon", beacon), ("species", species)].filter { !$1.isEmpty }
                .map { "\($0)=\(FormField.written($1))" }
        }

        /// Returns a function that says whether a record is to be shown.
        func fits(_ names: KnownNames) -> (RecordLine) -> Bool {
            guard species.isEmpty else { return { [species] in $0.text("species") == species } }
            guard !beacon.isEmpty else { return { _ in true } }
            let text = beacon.lowercased()
            let named = names.beacons.filter { $0.value.lowercased().contains(text: text) }
            let wanted = Set(named.keys.map { $0.lowercased() } + [text])
            return { line in
                ["beacon_id", "address"].contains { name in
                    line.text(name).map { wanted.contains($0.lowercased()) } ?? false
                }
            }
        }
    }

    private let device: String
    private let day: Day
    private let stream: String
    private let names: KnownNames
    /// The day's stream of audio, nil without one or for records that are not of sound.
    private let sound: String?
    private let request: Request
    private let found: RecordsBefore

    /// Nil if the file does not exist.
    init?(
        _ path: String,
        device: String,
        day: Day,
        stream: String,
        _ names: KnownNames,
        sound: String?,
        _ request: Request
    ) throws {
        (self.device, self.day, self.stream) = (device, day, stream)
        (self.names, self.sound, self.request) = (names, sound, request)
        guard let file = try LineFile.open(path) else { return nil }
        found = try RecordsBefore(file, before: request.before ?? .max, fits: request.fits(names))
    }

    func html(now: Int64) -> HTML {
        let title = StreamTitle.of(stream)
        let page = "\(names.title(device)), \(day.name), \(title) – Waypost fleet"
        return .page(page, now: now) { html in
            html.heading(device, day, label: names.label(device)) { $0.text(title) }
            filter(&html)
            if found.records.isEmpty { nothing(&html) } else { table(&html) }
            ways(&html)
        }
    }

    private func filter(_ html: inout HTML) {
        let hasBeacons = found.records.contains { $0.beacon != nil }
        guard hasBeacons || !request.beacon.isEmpty else { return }
        html.element("form", [("class", "filter screen"), ("method", "get")]) { html in
            html.raw(#"<div><label for="beacon">Beacon: id, address or label</label>"#)
            let attributes: [HTML.Attribute] = [
                ("id", "beacon"), ("name", "beacon"), ("type", "search"), ("value", request.beacon),
            ]
            html.open("input", attributes)
            html.raw("</div><button>Show</button>")
        }
    }

    private func nothing(_ html: inout HTML) {
        let text =
            found.older != nil
            ? "None in this part of the file."
            : request.before != nil
                ? "No older records."
                : request.fields.isEmpty
                    ? "No data on this day." : "No such record on this day."
        html.element("p", [("class", "soft")], text)
    }

    private func table(_ html: inout HTML) {
        html.table(["Time (UTC)", "Record"]) { html in
            for record in found.records { row(record, &html) }
        }
    }

    private func ways(_ html: inout HTML) {
        let fields = request.fields
        func link(_ words: String, _ query: [String], _ html: inout HTML) {
            let path = "/device/\(device)/\(day.name)/\(stream)"
            let end = query.isEmpty ? "" : "?" + query.joined(separator: "&")
            html.element("a", [("href", path + end)], words)
        }
        html.element("nav", [("class", "ways screen"), ("aria-label", "Records")]) { html in
            if !fields.isEmpty { link("All records", [], &html) }
            if request.before != nil { link("Newest records", fields, &html) }
            if let older = found.older {
                link("Older records", ["before=\(older)"] + fields, &html)
            }
        }
    }

    /// True for events and streams of one's own, such as detections of a program that listens.
    static func isOfAudio(_ stream: String) -> Bool {
        !stream.hasPrefix("linux_") && stream != "waypost_health"
    }

    private func row(_ record: FlatRecord, _ html: inout HTML) {
        html.element("tr") { html in
            html.element("th", [("scope", "row")]) { html in
                let time = record.text("timestamp") ?? record.text("timestamp_start") ?? ""
                html.time(asWritten: time)
                guard let label = record.beacon.flatMap({ names.beacons[$0] }) else { return }
                html.text(" ")
                html.element("span", [("class", "under")], label)
            }
            html.element("td") { html in
                html.members(record, without: record.hidden)
                guard let sound,
                    let time = record.text("timestamp").flatMap(WallTime.init(rfc3339:))
                else { return }
                html.sound(at: time.milliseconds, sound, device, day)
            }
        }
    }
}

extension FlatRecord {
    /// The members that need no words: the time, what is as usual, and what is there twice.
    fileprivate var hidden: Set<String> {
        let isSame = text("address").map { $0 == text("beacon_id") } ?? false
        let isUsual = text("clock") == "synced"
        return Set(["id", "timestamp", "timestamp_start"])
            .union(isSame ? ["address"] : []).union(isUsual ? ["clock"] : [])
    }

    /// The beacon that a sighting is of.
    fileprivate var beacon: String? {
        number("rssi") == nil ? nil : text("beacon_id") ?? text("address")
    }
}

extension HTML {
    /// Adds a record's time, with its milliseconds.
    fileprivate mutating func time(asWritten text: String) {
        guard let time = WallTime(rfc3339: text) else { return self.text(String(text.prefix(40))) }
        let machine = time.rfc3339
        element(
            "time",
            [("datetime", machine)],
            "\(machine.prefix(10)) \(machine.dropFirst(11).dropLast())"
        )
    }

    /// Lists names with their values.
    mutating func members(_ record: FlatRecord, without hidden: Set<String> = []) {
        let members = record.members.filter { !hidden.contains($0.name) }
        guard !members.isEmpty else { return }
        element("ul", [("class", "detail")]) { html in
            for (name, value) in members {
                let (words, unit) = RecordWords.split(name, isNumber: value.isNumber)
                let text = RecordWords.of(value.words, in: name)
                let wire = text == value.words ? name : "\(name): \(value.words)"
                let title: Attribute = ("title", wire)
                html.element("li", wire == words ? [] : [title]) { html in
                    html.element("span", "\(words) ")
                    if case .text(let text) = value, WallTime(rfc3339: text) != nil {
                        html.time(asWritten: text)
                    } else {
                        html.text("\(text) \(unit)")
                    }
                }
            }
        }
    }
}
