// The audio of a span of days: its level over time, and links to its hours or days.
import Host
import SQLite
import ServerBase
import ServerIndex

/// A stream's audio in a span of days, from the index.
struct AudioSpan {
    /// The slots with chunks, in order, and the number of chunks that begin in each.
    let slots: [(slot: Int64, chunks: Int64)]
    /// The numbers of its records.
    let series: [String: DaySeries]

    fileprivate static let level = "average_db_level"
    /// Hours are listed up to this length of a span, days beyond.
    static let maxHours: Int64 = 26

    fileprivate var chunks: Int64 { slots.reduce(0) { $0 + $1.chunks } }

    /// Counts the chunks of each hour of UTC, which a page has, by its beginning.
    var hours: [(time: Int64, chunks: Int64)] {
        count { $0.floorDivided(by: 3_600_000) * 3_600_000 }.map { ($0.key, $0.chunks) }
    }

    /// Counts the chunks of each local day.
    fileprivate func days(in zone: TimeZoneRules) -> [(day: Day, chunks: Int64)] {
        count(by: zone.day(of:)).map { ($0.key, $0.chunks) }
    }

    private func count<Key: Equatable>(by key: (Int64) -> Key) -> [(key: Key, chunks: Int64)] {
        var counts: [(key: Key, chunks: Int64)] = []
        for (slot, chunks) in slots {
            let key = key(slot * IndexedPart.slot)
            if counts.last?.key != key { counts.append((key, 0)) }
            counts[counts.count - 1].chunks += chunks
        }
        return counts
    }
}

extension FleetReader {
    /// Returns the audio of a stream in a span of time.
    func sound(of device: String, _ stream: String, in time: Range<Int64>) throws -> AudioSpan {
        let slots = IndexedPart.slots(in: time)
        let found = try database.rows(
            """
            SELECT slot, sum(slots.records) FROM files JOIN slots ON file=id WHERE device=? AND stream=?
            AND date >= ? AND date <= ? AND slot >= ? AND slot < ? GROUP BY slot ORDER BY slot
            """,
            device,
            stream,
            Day(of: time.lowerBound).name,
            Day(of: time.upperBound - 1).name,
            slots.lowerBound,
            slots.upperBound
        ) { ($0.required(0), $0.required(1)) }
        return AudioSpan(slots: found, series: try readings(of: device, stream, in: time).series)
    }
}

extension HTML {
    /// Draws audio: its level over time, and links to its hours, or days.
    mutating func sound(_ sound: AudioSpan, _ span: LocalSpan, _ device: String, _ stream: String) {
        let chunks = Words.count(sound.chunks, "chunk", "chunks")
        let seconds = sound.series["duration"].map {
            ", \(Words.span(seconds: Int64(min(max($0.total, 0), 1e12)))) of sound"
        }
        element("p", "\(chunks)\(seconds ?? "").")
        if let level = sound.series[AudioSpan.level] { self.level(level, stream) }
        element("ul", [("class", "days")]) { html in
            guard span.length <= AudioSpan.maxHours * 3_600_000 else {
                for (day, count) in sound.days(in: span.zone) {
                    guard let days = DaySpan(day, day) else { continue }
                    html.sound(count, at: span.address(device, days)) { $0.text(day.title) }
                }
                return
            }
            for (time, count) in sound.hours {
                let day = Day(of: time)
                let hour = (time - day.start) / 3_600_000
                let path = "/device/\(device)/\(day.name)/\(stream)/\(Words.twoDigits(hour))"
                html.sound(count, at: "\(path)?\(span.query)") { $0.time(time) }
            }
        }
    }

    private mutating func sound(_ count: Int64, at address: String, _ title: (inout HTML) -> Void) {
        element("li") { html in
            html.element("a", [("href", address)], title)
            html.text(" ")
            html.element("span", [("class", "soft")], Words.count(count, "chunk", "chunks"))
        }
    }

    /// Adds the level over time; the page's script draws it.
    private mutating func level(_ level: DaySeries, _ stream: String) {
        element("figure", [("data-sound", stream)]) { html in
            html.element("figcaption") { html in
                html.element("b", "Level")
                let range = [level.range.lowerBound, level.range.upperBound]
                let words = range.map { Words.decimal($0, 0) }
                let text = words[0] == words[1] ? words[0] : "\(words[0]) to \(words[1])"
                html.text(" \(text) dBFS ")
                html.element("span", [("class", "soft")], "The loudest of each interval.")
            }
        }
    }

    /// Adds a link to the sound of a point in time, if the day has any.
    mutating func sound(at time: Int64, _ stream: String?, _ device: String, _ day: Day) {
        guard let stream else { return }
        text(" ")
        let zone = zone.map { "&zone=\(FormField.written($0.name))" } ?? ""
        let address = "/device/\(device)/\(day.name)/\(stream)?at=\(time)\(zone)"
        element("a", [("href", address)]) { html in
            html.text("Sound")
            html.element("span", [("class", "hidden")], " at \(html.words(time))")
        }
    }
}
