// The parts of an SVG drawing.

protocol Drawing {}

extension Drawing {
    func line(
        _ x1: Double,
        _ y1: Double,
        _ x2: Double,
        _ y2: Double,
        _ style: String
    ) -> String {
        let places = [x1, y1, x2, y2].map(Self.number)
        return "<line x1=\"\(places[0])\" y1=\"\(places[1])\" x2=\"\(places[2])\" "
            + "y2=\"\(places[3])\" \(style)/>\n"
    }

    func text(_ x: Double, _ y: Double, _ words: String, _ style: String) -> String {
        "<text x=\"\(Self.number(x))\" y=\"\(Self.number(y))\" \(style)>\(words)</text>\n"
    }

    static func number(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
