// Audio on the pages: a day's level and hours, and players for an hour's chunks.
import Host
package import ServerBase
package import ServerIndex

extension HTML {
    /// Draws a day's audio: its level over time, and links to its hours.
    package mutating func sound(_ sound: AudioDay, _ day: Day, at path: String) {
        let seconds = sound.chunks.reduce(0) { $0 + ($1.end - $1.start) } / 1000
        let chunks = Words.count(Int64(sound.chunks.count), "chunk", "chunks")
        element("p", "\(chunks), \(Words.span(seconds: seconds)) of sound.")
        levels(sound.levels(on: day), at: path)
        element("ul", [("class", "days")]) { html in
            for hour in 0..<24 {
                let count = Int64(sound.chunks(in: hour, of: day).count)
                guard count > 0 else { continue }
                html.raw("<li>")
                html.element("a", [("href", "\(path)/\(hour < 10 ? "0" : "")\(hour)")]) {
                    $0.time(day.start(ofHour: hour))
                }
                html.text(" ")
                let chunks = Words.count(count, "chunk", "chunks")
                html.element("span", [("class", "soft")], chunks)
                html.raw("</li>")
            }
        }
    }

    /// Adds the level over the day; the page's script draws it.
    private mutating func levels(_ levels: [Int64: Double], at path: String) {
        guard let loudest = levels.values.max(), let quietest = levels.values.min() else { return }
        let list = (0..<288).map { levels[$0].map { Words.decimal($0, 1) } ?? "" }
        let plot: [Attribute] = [
            ("data-levels", list.joined(separator: ",")), ("data-sound", path),
        ]
        element("figure", plot) { html in
            html.element("figcaption") { html in
                html.element("b", "Level")
                let (low, high) = (Words.decimal(quietest, 0), Words.decimal(loudest, 0))
                let span = low == high ? high : "\(low) to \(high)"
                html.raw(" The loudest of each <output>five minutes</output>, ")
                html.text("\(span) dBFS on this day. Click to listen.")
            }
        }
    }

    /// Adds a link to the sound of a point in time, if the day has any.
    package mutating func sound(at time: Int64, _ stream: String?, _ device: String, _ day: Day) {
        guard let stream else { return }
        text(" ")
        element("a", [("href", "/device/\(device)/\(day.name)/\(stream)?at=\(time)")]) { html in
            html.text("Sound")
            html.element("span", [("class", "hidden")], " at \(Words.second(time)) UTC")
        }
    }
}

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

    func html() -> HTML {
        let start = day.start(ofHour: hour)
        let title = "\(names.title(device)), \(Words.minute(start)) UTC – Waypost fleet"
        return .page(title, now: now, loads: [.script("/spectrogram.js"), .script("/sound.js")]) {
            html in
            html.heading(device, day, label: names.label(device)) {
                $0.time(start)
            }
            html.raw(#"<div id="hour" class="hour screen" hidden></div>"#)
            html.raw(
                """
                <div class="wide"><table class="fold"><thead><tr><th scope="col">Time (UTC)</th>
                <th scope="col">Length</th><th scope="col">Level</th><th scope="col">Sound</th></tr></thead><tbody>
                """
            )
            var end: Int64?
            for chunk in chunks.prefix(Self.maxChunks) {
                if let end, chunk.start - end > AudioDay.shownPause {
                    pause(end, chunk.start, &html)
                }
                row(chunk, &html)
                end = max(end ?? chunk.end, chunk.end)
            }
            html.raw("</tbody></table></div>")
            html.more(chunks.count - Self.maxChunks, "chunk", "chunks")
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
                let name = "Sound of \(Words.second(chunk.start)) UTC"
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
