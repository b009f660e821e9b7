// Draws QR codes, which libqrencode makes.
import CQRencode

struct QRCode {
    /// Modules of the margin (ISO/IEC 18004).
    private static let margin = 4

    private let width: Int
    /// True for a dark module, row by row.
    private let modules: [Bool]

    /// Nil if the text is too long.
    init?(_ text: String) {
        guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M) else { return nil }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        self.width = width
        modules = (0..<width * width).map { code.pointee.data[$0] & 1 == 1 }
    }

    func draw(_ html: inout HTML, label: String) {
        let side = width + 2 * Self.margin
        let box = "\(-Self.margin) \(-Self.margin) \(side) \(side)"
        let picture: [HTML.Attribute] = [
            ("class", "code"), ("viewBox", box), ("role", "img"), ("aria-label", label),
        ]
        // Dark on light also on a dark page: not all phones read the reverse.
        html.element("svg", picture) { html in
            let ground: [HTML.Attribute] = [
                ("x", "\(-Self.margin)"), ("y", "\(-Self.margin)"), ("width", "\(side)"),
                ("height", "\(side)"), ("fill", "#fff"),
            ]
            html.element("rect", ground, "")
            let dark = modules.indices.filter { modules[$0] }
            let path = dark.map { "M\($0 % width) \($0 / width)h1v1h-1z" }.joined()
            html.element("path", [("d", path), ("fill", "#000")], "")
        }
    }
}
