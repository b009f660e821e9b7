// How cost grows, as an SVG drawing: a panel a figure, rows and beacons beneath each other.
import Foundation

/// Both axes are logarithmic: a straight level line is cost that does not grow, one at 45 degrees grows with the size.
struct GrowthPlot: Drawing {
    private static let (width, height) = (1100.0, 520.0)
    private static let (panelWidth, panelHeight) = (150.0, 150.0)
    private static let colour = "#0b6e99"
    private static let middle = "text-anchor=\"middle\""
    /// Decades that each panel's vertical axis shows, so that slopes can be compared.
    private static let decades = 4.0

    let report: GrowthReport

    var svg: String {
        var svg =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Self.width) \(Self.height)\" "
            + "font-family=\"sans-serif\" font-size=\"12\">\n"
            + "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
            + text(
                Self.width / 2,
                26,
                "How the cost of each step grows",
                "\(Self.middle) font-size=\"17\""
            )
        let byRows = report.byRows.map { (Double($0.rows), $0.figures) }
        let byBeacons = report.byBeacons.map { (Double($0.beacons), $0.figures) }
        for (line, sizes) in [byRows, byBeacons].enumerated() {
            for (column, figure) in GrowthPoint.figures.enumerated() {
                let x = 60 + Double(column) * (Self.panelWidth + 58)
                let y = 60 + Double(line) * (Self.panelHeight + 80)
                let points = sizes.map { ($0.0, $0.1[figure.name] ?? 0) }
                svg += panel(x, y, "\(figure.name), \(figure.unit)", points)
                svg += text(
                    x + Self.panelWidth / 2,
                    y + Self.panelHeight + 34,
                    line == 0 ? "rows" : "beacons",
                    Self.middle
                )
            }
        }
        return svg + "</svg>\n"
    }

    private func panel(
        _ left: Double,
        _ top: Double,
        _ title: String,
        _ points: [(Double, Double)]
    ) -> String {
        let (width, height) = (Self.panelWidth, Self.panelHeight)
        let least = points.map(\.1).filter { $0 > 0 }.min() ?? 1
        let base = log10(least).rounded(.down)
        let (first, last) = (log10(points.first?.0 ?? 1), log10(points.last?.0 ?? 10))
        func x(_ value: Double) -> Double {
            left + 14 + (log10(value) - first) / max(last - first, 1) * (width - 28)
        }
        func y(_ value: Double) -> Double {
            top + height - (log10(max(value, 1e-9)) - base) / Self.decades * height
        }
        var svg = text(left + width / 2, top - 8, title, Self.middle)
        for decade in 0...Int(Self.decades) {
            let value = pow(10, base + Double(decade))
            svg += line(left, y(value), left + width, y(value), "stroke=\"#dddddd\"")
            svg += text(left - 5, y(value) + 4, Self.label(value), "text-anchor=\"end\"")
        }
        for point in points {
            svg += text(x(point.0), top + height + 16, Self.power(point.0), Self.middle)
        }
        let places = points.map { "\(Self.number(x($0.0))),\(Self.number(y($0.1)))" }
        svg +=
            "<polyline fill=\"none\" stroke=\"\(Self.colour)\" stroke-width=\"2\" points=\""
            + places.joined(separator: " ") + "\"/>\n"
        for point in points {
            svg +=
                "<circle cx=\"\(Self.number(x(point.0)))\" cy=\"\(Self.number(y(point.1)))\" r=\"3\" "
                + "fill=\"\(Self.colour)\"/>\n"
            let style = "\(Self.middle) font-size=\"10\""
            svg += text(x(point.0), y(point.1) - 8, QueueReport.text(point.1), style)
        }
        return svg
    }

    private static func label(_ value: Double) -> String {
        value >= 1 ? "\(Int(value.rounded()))" : QueueReport.text(value, decimals: 2)
    }

    /// A thousand as 10³.
    private static func power(_ value: Double) -> String {
        let digits = Array("⁰¹²³⁴⁵⁶⁷⁸⁹")
        let power = Int(log10(value).rounded())
        guard power < 10, abs(pow(10, Double(power)) - value) < 0.5 else { return "\(Int(value))" }
        return "10\(digits[power])"
    }
}
