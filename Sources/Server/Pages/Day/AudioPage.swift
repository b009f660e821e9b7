// The page of an hour of audio: players for its chunks.
import Host
import ServerBase
import ServerIndex

/// The page of an hour's chunks.
struct AudioPage {
    /// The maximum number of chunks; an hour of one-second chunks has fewer.
    private static let maxChunks = 4000

    let device: String
    let names: KnownNames
    let day: Day
    let stream: String
    let hour: Int
    let chunks: [AudioChunk]
    let now: Int64
    /// Nil if the address names none: times are then in UTC, and the script shows the browser's.
    let zone: TimeZoneRules?

    func html() -> HTML {
        let start = day.start(ofHour: hour)
        let shown = zone ?? .utc
        let files = [PageFile.script("/spectrogram.js"), .script("/sound.js")]
        let title = "\(names.title(device)), \(shown.minute(start)) \(shown.title) – Waypost fleet"
        return .page(title, now: now, loads: files, zone: zone) { html in
            let day = zone?.day(of: start) ?? day
            html.heading(device, day, label: names.label(device), zone: zone) { $0.time(start) }
            html.raw(#"<div id="hour" class="hour screen" hidden></div>"#)
            html.table(["Time (\(shown.title))", "Length", "Level", "Sound"]) { rows(&$0) }
            html.more(chunks.count - Self.maxChunks, "chunk", "chunks")
        }
    }

    private func rows(_ html: inout HTML) {
        var end: Int64?
        for chunk in chunks.prefix(Self.maxChunks) {
            if let end, chunk.start - end > AudioDay.shownPause {
                pause(end, chunk.start, &html)
            }
            row(chunk, &html)
            end = max(end ?? chunk.end, chunk.end)
        }
    }

    private func pause(_ from: Int64, _ to: Int64, _ html: inout HTML) {
        html.element("tr", [("class", "pause")]) { html in
            let seconds = Words.decimal(Double(to - from) / 1000, 1)
            html.element("td", [("colspan", "4")], "no sound for \(seconds) s")
        }
    }

    private func row(_ chunk: AudioChunk, _ html: inout HTML) {
        let address = "/device/\(device)/\(day.name)/\(stream)/\(chunk.file)"
        let place: [HTML.Attribute] = [
            ("id", chunk.file), ("data-start", "\(chunk.start)"), ("data-end", "\(chunk.end)"),
            ("data-level", chunk.level.map { Words.decimal($0, 1) } ?? ""),
            ("data-rate", chunk.rate.map { Words.decimal($0, 0) } ?? ""),
        ]
        html.element("tr", place) { html in
            html.element("th", [("scope", "row")]) { $0.time(chunk.start, seconds: true) }
            let seconds = Words.decimal(Double(chunk.end - chunk.start) / 1000, 1)
            html.element("td", [("data-label", "Length")], "\(seconds) s")
            let level = chunk.level.map { "\(Words.decimal($0, 1)) dBFS" } ?? ""
            html.element("td", [("data-label", "Level")], level)
            html.element("td") { html in
                let name = "Sound of \(html.words(chunk.start))"
                let player: [HTML.Attribute] = [
                    ("controls", ""), ("preload", "none"), ("src", address), ("aria-label", name),
                ]
                html.element("audio", player, "")
                html.text(" ")
                let link: [HTML.Attribute] = [("href", address), ("download", "")]
                html.element("a", link) { html in
                    html.text("Download")
                    html.element("span", [("class", "hidden")], " \(name)")
                }
            }
        }
    }
}
