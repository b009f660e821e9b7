// Audio on the pages: a day's level and hours, and players for an hour's chunks.
import Host

extension HTML {
    /// Draws a day's audio: its level over time, and links to its hours.
    mutating func sound(_ sound: SoundDay, _ day: Day, at path: String) {
        let seconds = sound.chunks.reduce(0) { $0 + ($1.end - $1.start) } / 1000
        let chunks = Words.count(Int64(sound.chunks.count), "chunk", "chunks")
        element("p", "\(chunks), \(Words.span(seconds: seconds)) of sound.")
        levels(sound.levels(on: day), at: path)
        element("ul", [("class", "days")]) { html in
            for hour in 0..<24 {
                let count = Int64(sound.chunks(in: hour, of: day).count)
                guard count > 0 else { continue }
                let name = hour < 10 ? "0\(hour)" : "\(hour)"
                html.raw("<li>")
                html.element("a", [("href", "\(path)/\(name)")], "\(name) h")
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
                let span = "\(Words.decimal(quietest, 0)) to \(Words.decimal(loudest, 0)) dBFS"
                html.text(" The loudest of each five minutes, \(span).")
            }
        }
    }

    /// Adds a link to the sound of a point in time, if the day has any.
    mutating func sound(at time: Int64, _ stream: String?, _ device: String, _ day: Day) {
        guard let stream else { return }
        text(" ")
        element("a", [("href", "/device/\(device)/\(day.name)/\(stream)?at=\(time)")]) { html in
            html.text("Sound")
            html.element("span", [("class", "hidden")], " at \(Words.second(time)) UTC")
        }
    }
}

/// The page of an hour's chunks.
struct SoundPage {
    /// The maximum number of chunks; an hour of one-second chunks has fewer.
    private static let mostChunks = 4000

    let device: String
    let day: Day
    let stream: String
    let hour: Int
    let chunks: [SoundChunk]
    let now: Int64
    private let hasSpectrograms = Spectrograms.canBeMade

    func html() -> HTML {
        let title = "\(device), \(day.name) \(hour) h – Waypost fleet"
        return .page(title, now: now, loads: [.script("/sound.js")]) { html in
            html.heading(device, day, "\(hour) h")
            html.raw(#"<div id="hour" class="hour screen" hidden></div>"#)
            html.raw(
                """
                <div class="wide"><table class="fold"><thead><tr><th scope="col">Time (UTC)</th>
                <th scope="col">Length</th><th scope="col">Level</th><th scope="col">Sound</th></tr></thead><tbody>
                """
            )
            var end: Int64?
            for chunk in chunks.prefix(Self.mostChunks) {
                if let end, chunk.start - end > SoundDay.shownPause {
                    pause(end, chunk.start, &html)
                }
                row(chunk, &html)
                end = max(end ?? chunk.end, chunk.end)
            }
            html.raw("</tbody></table></div>")
            html.more(chunks.count - Self.mostChunks, "chunk", "chunks")
        }
    }

    /// Adds a spectrogram with its axes, which is loaded only when opened.
    private func spectrogram(
        _ chunk: SoundChunk,
        _ address: String,
        _ name: String,
        _ html: inout HTML
    ) {
        html.element("details") { html in
            html.element("summary", "Spectrogram")
            html.element("div", [("class", "spectrum")]) { html in
                html.raw(
                    """
                    <span class="hz" aria-hidden="true"><span>8000 Hz</span><span>4000 Hz</span><span>0 Hz</span></span>
                    """
                )
                let (width, height) = Spectrograms.size
                html.open(
                    "img",
                    [
                        ("src", address + SoundChunk.picture), ("loading", "lazy"),
                        ("width", "\(width)"), ("height", "\(height)"),
                        ("alt", "Spectrogram. \(name), 0 to 8 kHz upwards"),
                    ]
                )
                let length = Double(min(chunk.end - chunk.start, Spectrograms.longest)) / 1000
                html.element("span", [("class", "seconds"), ("aria-hidden", "true")]) { html in
                    for part in [0, 0.25, 0.5, 0.75, 1] {
                        html.element("span", "\(Words.decimal(length * part, 1)) s")
                    }
                }
            }
        }
    }

    private func pause(_ from: Int64, _ to: Int64, _ html: inout HTML) {
        html.element("tr", [("class", "pause")]) { html in
            let seconds = Words.decimal(Double(to - from) / 1000, 1)
            html.element("td", [("colspan", "4")], "no sound for \(seconds) s")
        }
    }

    private func row(_ chunk: SoundChunk, _ html: inout HTML) {
        let address = "/device/\(device)/\(day.name)/\(stream)/\(chunk.file)"
        let place: [HTML.Attribute] = [
            ("id", chunk.file), ("data-start", "\(chunk.start)"), ("data-end", "\(chunk.end)"),
        ]
        html.element("tr", place) { html in
            html.element("th", [("scope", "row")]) { $0.time(chunk.start, seconds: true) }
            let seconds = Words.decimal(Double(chunk.end - chunk.start) / 1000, 1)
            html.element("td", [("data-label", "Length")], "\(seconds) s")
            let level = chunk.level.map { "\(Words.decimal($0, 1)) dBFS" } ?? ""
            html.element("td", [("data-label", "Level")], level)
            html.element("td") { html in
                let name = "Sound of \(Words.second(chunk.start))"
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
                if hasSpectrograms { spectrogram(chunk, address, name, &html) }
            }
        }
    }
}
