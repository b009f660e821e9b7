// Positions on a plain grid with a scale, without map tiles from other servers.
import Glibc
import ServerBase
import ServerIndex

/// An equirectangular map, true to scale at its centre (Snyder 1987, page 90).
struct PlaceMap {
    private static let (width, height, margin) = (600.0, 400.0, 36.0)
    /// The least extent in degrees, some 200 m.
    private static let least = 0.002

    /// The right end of the scale bar.
    private static let right = width - 14
    /// The widest letter, in units of the picture: that of a phone, 17 units high.
    private static let letter = 10.0

    private let middle: (latitude: Double, longitude: Double)
    /// The ratio of a degree of longitude to one of latitude at the centre.
    private let squeeze: Double
    /// Units of the picture per degree of latitude.
    private let scale: Double

    /// Nil without fixes.
    init?(_ fixes: [Track.Fix]) {
        guard let south = fixes.map(\.latitude).min(), let north = fixes.map(\.latitude).max(),
            let west = fixes.map(\.longitude).min(), let east = fixes.map(\.longitude).max()
        else { return nil }
        middle = ((south + north) / 2, (west + east) / 2)
        squeeze = max(0.05, cos(middle.latitude * .pi / 180))
        let tall = max(Self.least, north - south)
        let wide = max(Self.least, (east - west) * squeeze)
        scale = min(
            (Self.height - 2 * Self.margin) / tall,
            (Self.width - 2 * Self.margin) / wide
        )
    }

    func x(_ longitude: Double) -> Double {
        Self.width / 2 + (longitude - middle.longitude) * squeeze * scale
    }

    func y(_ latitude: Double) -> Double {
        Self.height / 2 - (latitude - middle.latitude) * scale
    }

    /// Formats a coordinate of the picture, to a tenth.
    static func text(_ number: Double) -> String { Words.decimal(number, 1) }

    /// Draws the map; `label` describes it, `body` draws its content.
    func draw(_ html: inout HTML, label: String, _ body: (inout HTML) -> Void) {
        let box = "0 0 \(Int(Self.width)) \(Int(Self.height))"
        let attributes: [HTML.Attribute] = [
            ("class", "map"), ("viewBox", box), ("role", "group"), ("aria-label", label),
        ]
        html.element("svg", attributes) { html in
            drawGrid(&html)
            body(&html)
            drawScale(&html)
        }
    }

    /// Draws lines at round degrees; labels only where they cover no other text.
    private func drawGrid(_ html: inout HTML) {
        let (tall, wide) = (Self.height / scale, Self.width / scale / squeeze)
        for latitude in Self.steps(middle.latitude, tall, 4) where abs(latitude.degrees) <= 90 {
            let y = y(latitude.degrees)
            line(&html, "grid", (0, y), (Self.width, y))
            guard y > 16, y < Self.height - 24 else { continue }
            text(&html, (4, y - 4), latitude.words + (latitude.degrees < 0 ? "° S" : "° N"))
        }
        var free = 4.0
        for longitude in Self.steps(middle.longitude, wide, 5) where abs(longitude.degrees) <= 180 {
            let x = x(longitude.degrees)
            line(&html, "grid", (x, 0), (x, Self.height))
            let words = longitude.words + (longitude.degrees < 0 ? "° W" : "° E")
            let end = x + 4 + Self.letter * Double(words.count)
            guard x > free, end < scaleBar.left else { continue }
            free = end
            text(&html, (x + 4, Self.height - 6), words)
        }
    }

    /// Returns about `count` round degrees in a span, with their labels.
    private static func steps(_ middle: Double, _ span: Double, _ count: Double) -> [(
        degrees: Double, words: String
    )] {
        let step = round(span / count)
        let digits = step >= 1 ? 0 : min(6, Int(ceil(-log10(step) - 1e-9)))
        let first = ceil((middle - span / 2) / step)
        return (0...Int(span / step)).map { index in
            let degrees = (first + Double(index)) * step
            return (degrees, Words.decimal(abs(degrees), digits))
        }
    }

    /// A round distance: its length in the picture, its label, and the left edge of both.
    private var scaleBar: (length: Double, words: String, left: Double) {
        let metres = Self.round(Self.width / 4 / scale * Track.degree)
        let length = metres / Track.degree * scale
        let words =
            metres >= 1000
            ? "\(Words.decimal(metres / 1000, 0)) km"
            : "\(Words.decimal(metres, metres < 1 ? 1 : 0)) m"
        return (length, words, Self.right - max(length, Self.letter * Double(words.count)))
    }

    private func drawScale(_ html: inout HTML) {
        let (length, words, _) = scaleBar
        let (right, y) = (Self.right, Self.height - 12)
        line(&html, "scale", (right - length, y), (right, y))
        for x in [right - length, right] { line(&html, "scale", (x, y - 4), (x, y + 4)) }
        let attributes: [HTML.Attribute] = [
            ("x", Self.text(right)), ("y", Self.text(y - 8)), ("text-anchor", "end"),
        ]
        html.element("text", attributes, words)
    }

    func line(
        _ html: inout HTML,
        _ kind: String,
        _ start: (Double, Double),
        _ end: (Double, Double)
    ) {
        let attributes: [HTML.Attribute] = [
            ("class", kind), ("x1", Self.text(start.0)), ("y1", Self.text(start.1)),
            ("x2", Self.text(end.0)), ("y2", Self.text(end.1)),
        ]
        html.element("line", attributes, "")
    }

    func text(_ html: inout HTML, _ place: (Double, Double), _ words: String) {
        let attributes: [HTML.Attribute] = [("x", Self.text(place.0)), ("y", Self.text(place.1))]
        html.element("text", attributes, words)
    }

    /// Rounds down to a power of ten times 1, 2 or 5.
    static func round(_ number: Double) -> Double {
        let power = pow(10, floor(log10(number)))
        return ([5, 2, 1].first { $0 * power <= number * 1.000_001 } ?? 1) * power
    }
}
