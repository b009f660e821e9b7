// Audio on the pages: a day's level and hours, and players for an hour's chunks.
import Host

extension HTML {
    /// Draws a day's audio: its level over time, and links to its hours.
    mutating func sound(_ sound: SoundDay, _ day: Day, at path: String) {
        let seconds = sound.chunks.reduce(0) { $0 + ($1.end - $1.start) } / 1000
        let chunks = Words.count(Int64(sound.chunks.count), "chunk", "chunks")
        element("p", "\(chunks), \(Words.span(seconds: seconds)) of sound.")
        levels(sound.levels(on: day))
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

    /// Draws bars from -90 to 0 dBFS, five minutes each.
    private mutating func levels(_ levels: [Int64: Double]) {
        guard let loudest = levels.values.max(), let quietest = levels.values.min() else { return }
        let words =
            "The loudest of each five minutes, \(Words.decimal(quietest, 0)) to \(Words.decimal(loudest, 0)) dBFS"
        element("p", [("class", "soft")], "\(words). 90 dB high, 0 h to 24 h.")
        strip("strip high", 288, 90, label: words) { html in
            for (slot, level) in levels.sorted(by: { $0.key < $1.key }) {
                html.bar("level", Int(slot), min(max(level + 90, 1), 90), of: 90)
            }
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
        .page("\(device), \(day.name) \(hour) h – Waypost fleet", now: now) { html in
            html.heading(device, day, "\(hour) h")
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

    /// Adds a spectrogram, which is loaded only when opened.
    private func spectrogram(_ address: String, _ name: String, _ html: inout HTML) {
        html.element("details") { html in
            html.element("summary", "Spectrogram")
            let (width, height) = Spectrograms.size
            html.open(
                "img",
                [
                    ("src", address + SoundChunk.picture), ("loading", "lazy"),
                    ("width", "\(width)"), ("height", "\(height)"),
                    ("alt", "Spectrogram. \(name), 0 to 8 kHz upwards"),
                ]
            )
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
        html.element("tr") { html in
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
                if hasSpectrograms { spectrogram(address, name, &html) }
            }
        }
    }
}
