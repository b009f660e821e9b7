// `waypost-bench growth`: how cost grows with rows and with beacons.
import ArgumentParser
import Foundation
import JSON

struct GrowthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "growth",
        abstract:
            "Measure how the queue's steps grow with the rows that wait and with the beacons.",
        discussion: """
            For each size: CPU of storing the last 100,000 rows, time of a start and of the figures of `status`, CPU of \
            forming batches and of deleting what was uploaded. The sizes in one line are in one run, so that what \
            matters is how they differ. Progress goes to standard error.
            """
    )

    @Option(help: "Rows that wait, at 40 beacons; sizes with commas between them.")
    var rows = "10000,100000,1000000,10000000"
    @Option(help: "Beacons, at a million rows (or the largest of --rows below).")
    var beacons = "10,1000,100000"
    @Option(help: "Where the databases are made: on the disk that is to be measured.")
    var directory = "/var/tmp"
    @Option(help: "Draws the figures into this SVG file.")
    var plot: String?
    @Flag(help: "One JSON object instead of the table.")
    var json = false

    mutating func validate() throws {
        guard !sizes(rows, from: 1000).isEmpty, !sizes(beacons, from: 1).isEmpty else {
            throw ValidationError("--rows takes numbers from 1000, --beacons from 1")
        }
    }

    private func sizes(_ text: String, from least: Int) -> [Int] {
        let words = text.split(separator: ",")
        let sizes = words.compactMap { Int($0) }.filter { (least...1_000_000_000).contains($0) }
        return sizes.count == words.count ? sizes.sorted() : []
    }

    mutating func run() throws {
        let scratch = try ScratchFolder(in: directory)
        let rows = sizes(rows, from: 1000)
        let middle = min(1_000_000, rows.last ?? 1_000_000)
        var report = GrowthReport(machine: Machine(folder: directory))
        report.byRows = try rows.map { rows in
            try point(GrowthPoint(rows: rows, beacons: 40, database: scratch.database()), scratch)
        }
        report.byBeacons = try sizes(beacons, from: 1).map { beacons in
            let database = scratch.database()
            return try point(
                GrowthPoint(rows: middle, beacons: beacons, database: database),
                scratch
            )
        }
        if let plot {
            try GrowthPlot(report: report).svg.write(
                toFile: plot,
                atomically: true,
                encoding: .utf8
            )
        }
        Output.write(json ? report.json : report.table)
    }

    private func point(
        _ point: GrowthPoint,
        _ scratch: ScratchFolder
    ) throws -> GrowthReport.Size {
        Output.progress("\(point.rows) rows of \(point.beacons) beacons")
        let figures = try point.measure()
        scratch.clear()
        return GrowthReport.Size(rows: point.rows, beacons: point.beacons, figures: figures)
    }
}

/// The measured figures, by size.
struct GrowthReport {
    struct Size {
        var rows: Int
        var beacons: Int
        var figures: Figures
    }

    var machine: Machine
    var byRows: [Size] = []
    var byBeacons: [Size] = []

    var table: String {
        var text =
            "\(machine.cpu), \(machine.cores) cores; \(machine.fileSystem), \(machine.disk)\n"
        for (title, sizes) in [("rows", byRows), ("beacons", byBeacons)] {
            text += "\n" + Self.line([title] + GrowthPoint.figures.map(\.name))
            text += Self.line([""] + GrowthPoint.figures.map(\.unit))
            for size in sizes {
                let count = title == "rows" ? size.rows : size.beacons
                let cells = GrowthPoint.figures.map {
                    QueueReport.text(size.figures[$0.name] ?? 0)
                }
                text += Self.line(["\(count)"] + cells)
            }
            text += Self.line(
                ["largest/smallest"] + GrowthPoint.figures.map { growth($0.name, sizes) }
            )
        }
        return text
    }

    private func growth(_ name: String, _ sizes: [Size]) -> String {
        guard let first = sizes.first?.figures[name], let last = sizes.last?.figures[name],
            first > 0
        else { return "-" }
        return QueueReport.text(last / first, decimals: 2)
    }

    private static func line(_ cells: [String]) -> String {
        let widths = [17, 11, 9, 9, 14, 12]
        return zip(cells, widths).enumerated().map { place, pair in
            let blanks = String(repeating: " ", count: max(0, pair.1 - pair.0.count))
            return place == 0 ? pair.0 + blanks : blanks + pair.0
        }.joined() + "\n"
    }

    var json: String {
        Row.report("growth", summary) { json in
            machine.write(to: &json)
            for (title, sizes) in [("by_rows", byRows), ("by_beacons", byBeacons)] {
                json.key(title)
                json.array { json in
                    for size in sizes { Self.write(size, to: &json) }
                }
            }
        }
    }

    /// The largest beside the smallest: what grows with the logarithm of the size grows by no more than that.
    private var summary: [Row] {
        [("rows", byRows, \Size.rows), ("beacons", byBeacons, \Size.beacons)].flatMap {
            title,
            sizes,
            count -> [Row] in
            guard let first = sizes.first, let last = sizes.last, first[keyPath: count] > 1 else {
                return []
            }
            let growth = log(Double(last[keyPath: count])) / log(Double(first[keyPath: count]))
            return GrowthPoint.figures.map { name, unit in
                Row(
                    "\(name) with \(last[keyPath: count]) \(title)",
                    unit,
                    last.figures[name],
                    beside: ("\(first[keyPath: count]) \(title)", first.figures[name]),
                    goal: name == "start"
                        ? Row.Goal(limit: 300) : Row.Goal(limit: growth, isOfRatio: true)
                )
            }
        }
    }

    private static func write(_ size: Size, to json: inout JSONWriter) {
        json.object { json in
            json.field("rows", Int64(size.rows))
            json.field("beacons", Int64(size.beacons))
            for (name, unit) in GrowthPoint.figures {
                let key = "\(name)_\(unit == "ms" ? "ms" : "cpu_us")"
                json.field(key, size.figures[name] ?? 0)
            }
        }
    }
}
