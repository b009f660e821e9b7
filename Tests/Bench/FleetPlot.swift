// The fleet's requests over time as an SVG drawing.
import Host

/// Draws the rate at the server: one line an outage, the outage itself shaded.
struct FleetPlot: Drawing {
    private static let (width, height) = (960.0, 440.0)
    private static let (left, top, right, bottom) = (70.0, 50.0, 20.0, 110.0)
    private static let colours = ["#0b6e99", "#c4451c", "#5b8c2a", "#7b4fa3", "#b8860b"]
    /// Seconds of one point of a line.
    private static let step = 60

    let reports: [FleetReport]

    private var seconds: Int { reports.first?.requests.count ?? 1 }

    private var lines: [[Double]] {
        reports.map { report in
            stride(from: 0, to: report.requests.count, by: Self.step).map { start in
                let part = report.requests[start..<min(start + Self.step, report.requests.count)]
                return Double(part.reduce(0, +)) / Double(part.count)
            }
        }
    }

    var svg: String {
        let lines = lines
        let highest = max(1, lines.joined().max() ?? 1)
        let scale = Self.tick(highest)
        let top = (highest / scale).rounded(.up) * scale
        var svg =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Self.width) \(Self.height)\" "
            + "font-family=\"sans-serif\" font-size=\"13\">\n"
            + "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + title + shade
        svg += verticalAxis(top, scale) + horizontalAxis
        for (index, line) in lines.enumerated() { svg += path(line, top, index) }
        if let steady = reports.first?.steady.mean {
            svg += level(steady, top, "steady") + level(steady * FleetReport.limit, top, "twice")
        }
        for index in reports.indices { svg += legend(index) }
        return svg + "</svg>\n"
    }

    private var title: String {
        guard let plan = reports.first?.plan else { return "" }
        return text(
            Self.width / 2,
            28,
            "Requests at the server: \(plan.gateways) gateways, one sync every "
                + "\(plan.interval.milliseconds / 1000) s",
            "text-anchor=\"middle\" font-size=\"17\""
        )
    }

    /// The time of the outage.
    private var shade: String {
        guard let plan = reports.first?.plan else { return "" }
        let from = x(Double(plan.before.milliseconds) / 1000)
        let to = x(Double((plan.before + plan.outage).milliseconds) / 1000)
        return
            "<rect x=\"\(Self.number(from))\" y=\"\(Self.top)\" width=\"\(Self.number(to - from))\" "
            + "height=\"\(Self.height - Self.top - Self.bottom)\" fill=\"#f3e9d8\"/>\n"
            + text(
                (from + to) / 2,
                Self.top + 16,
                "outage",
                "text-anchor=\"middle\" fill=\"#7a6a4a\""
            )
    }

    // MARK: Axes

    private func verticalAxis(_ top: Double, _ scale: Double) -> String {
        var svg = ""
        for value in stride(from: 0, through: top, by: scale) {
            let y = y(value, top)
            svg += line(Self.left, y, Self.width - Self.right, y, "stroke=\"#dddddd\"")
            svg += text(Self.left - 8, y + 4, Self.label(value), "text-anchor=\"end\"")
        }
        let middle = (Self.top + Self.height - Self.bottom) / 2
        return svg
            + text(
                20,
                middle,
                "requests per second (mean of a minute)",
                "text-anchor=\"middle\" transform=\"rotate(-90 20 \(middle))\""
            )
    }

    private var horizontalAxis: String {
        let bottom = Self.height - Self.bottom
        var svg = line(Self.left, bottom, Self.width - Self.right, bottom, "stroke=\"#333333\"")
        let hours = Double(seconds) / 3600
        for hour in stride(from: 0, through: hours, by: hours > 12 ? 2 : hours > 3 ? 1 : 0.25) {
            let x = x(hour * 3600)
            svg += line(x, bottom, x, bottom + 5, "stroke=\"#333333\"")
            svg += text(x, bottom + 20, Self.label(hour), "text-anchor=\"middle\"")
        }
        return svg + text(Self.width / 2, bottom + 40, "hours", "text-anchor=\"middle\"")
    }

    private func level(_ value: Double, _ top: Double, _ name: String) -> String {
        let y = y(value, top)
        return line(
            Self.left,
            y,
            Self.width - Self.right,
            y,
            "stroke=\"#555555\" stroke-dasharray=\"5 4\""
        )
            + text(
                Self.width - Self.right - 4,
                y - 5,
                name,
                "text-anchor=\"end\" fill=\"#333333\" stroke=\"#ffffff\" stroke-width=\"4\" paint-order=\"stroke\""
            )
    }

    // MARK: Lines

    private func path(_ values: [Double], _ top: Double, _ index: Int) -> String {
        let points = values.enumerated().map { place, value in
            let x = x((Double(place) + 0.5) * Double(Self.step))
            return "\(Self.number(x)),\(Self.number(y(value, top)))"
        }
        return "<polyline fill=\"none\" stroke=\"\(Self.colours[index % Self.colours.count])\" "
            + "stroke-width=\"1.6\" points=\"\(points.joined(separator: " "))\"/>\n"
    }

    private func legend(_ index: Int) -> String {
        let colour = Self.colours[index % Self.colours.count]
        let x = Self.left + Double(index % 2) * 430
        let y = Self.height - Self.bottom + 62 + Double(index / 2) * 18
        return line(x, y - 4, x + 24, y - 4, "stroke=\"\(colour)\" stroke-width=\"3\"")
            + text(x + 32, y, reports[index].plan.kind.words, "")
    }

    // MARK: Parts

    private func x(_ second: Double) -> Double {
        Self.left + second / Double(max(1, seconds)) * (Self.width - Self.left - Self.right)
    }

    private func y(_ value: Double, _ top: Double) -> Double {
        let bottom = Self.height - Self.bottom
        return bottom - value / top * (bottom - Self.top)
    }

    /// 1, 2 or 5 times a power of ten: about six of them up to `highest`.
    private static func tick(_ highest: Double) -> Double {
        var unit = 1.0
        while unit * 60 < highest { unit *= 10 }
        return [unit, unit * 2, unit * 5, unit * 10].first { highest / $0 <= 7 } ?? unit * 10
    }

    private static func label(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value))" : "\(value)"
    }
}
