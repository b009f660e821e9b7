// A fleet's request rates before, during and after an outage: as a table, JSON and a plot.
import Host
import JSON
import Queue

/// Requests per second in one part of the time.
struct FleetRate: Sendable {
    var mean: Double
    /// The busiest window.
    var peak: Double
}

/// The result of one simulation.
struct FleetReport: Sendable {
    /// Seconds over which a peak is taken: shorter ones show chance more than the fleet.
    static let window = 30
    /// The highest rate allowed after an outage, as a multiple of the normal rate.
    static let limit = 2.0

    let plan: FleetPlan
    /// Requests of each second.
    let requests: [Int]
    let steady: FleetRate
    let during: FleetRate
    let after: FleetRate
    let hasCaughtUp: Bool

    init(_ simulation: FleetSimulation) {
        plan = simulation.plan
        requests = simulation.requests
        hasCaughtUp = simulation.hasCaughtUp
        let outage = Int(plan.before.milliseconds / 1000)
        let back = outage + Int(plan.outage.milliseconds / 1000)
        let first = min(outage, Int(plan.interval.milliseconds / 1000) * 2)
        steady = Self.rate(requests[first..<outage])
        during = Self.rate(requests[outage..<back])
        after = Self.rate(requests[back...])
    }

    /// The busiest window after the outage, compared with the mean before it.
    var ratio: Double { steady.mean > 0 ? after.peak / steady.mean : 0 }

    private static func rate(_ seconds: ArraySlice<Int>) -> FleetRate {
        guard seconds.count >= window else { return FleetRate(mean: 0, peak: 0) }
        let values = Array(seconds)
        var sum = values.prefix(window).reduce(0, +)
        var maximum = sum
        for index in window..<values.count {
            sum += values[index] - values[index - window]
            maximum = max(maximum, sum)
        }
        return FleetRate(
            mean: Double(values.reduce(0, +)) / Double(values.count),
            peak: Double(maximum) / Double(window)
        )
    }

    static func table(_ reports: [Self]) -> String {
        guard let plan = reports.first?.plan else { return "" }
        var text =
            "\(plan.gateways) gateways, one sync every \(plan.interval.milliseconds / 1000) s, "
            + "\(plan.outage.milliseconds / 60_000) min of outage; requests per second\n"
            + "(peaks over \(window) s; after/steady: the busiest \(window) s after, to the mean before)\n\n"
        text += row(["OUTAGE", "STEADY", "DURING", "PEAK", "AFTER", "PEAK", "AFTER/STEADY", ""])
        for report in reports {
            text += row([
                report.plan.kind.words, tenths(report.steady.mean), tenths(report.during.mean),
                tenths(report.during.peak), tenths(report.after.mean), tenths(report.after.peak),
                tenths(report.ratio * 10, 100) + " x",
                report.ratio > limit
                    ? "OVER \(tenths(limit)) x" : report.hasCaughtUp ? "" : "BEHIND",
            ])
        }
        return text
    }

    private static func row(_ cells: [String]) -> String {
        let widths = [42, 7, 7, 7, 7, 7, 13, 0]
        let cells = zip(cells, widths).enumerated().map { place, cell in
            let blanks = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
            return place == 0 ? cell.0 + blanks : blanks + cell.0
        }
        var line = cells.joined(separator: " ")
        while line.last == " " { line.removeLast() }
        return line + "\n"
    }

    private static func tenths(_ value: Double, _ parts: Double = 10) -> String {
        "\((value * 10).rounded() / parts)"
    }

    static func json(_ reports: [Self]) -> [UInt8] {
        var json = JSONWriter()
        json.array { json in
            for report in reports {
                json.object {
                    $0.field("outage", report.plan.kind.rawValue)
                    $0.field("gateways", Int64(report.plan.gateways))
                    $0.field("seed", Int64(truncatingIfNeeded: report.plan.seed))
                    $0.field("steady_mean", report.steady.mean)
                    $0.field("steady_peak", report.steady.peak)
                    $0.field("during_mean", report.during.mean)
                    $0.field("during_peak", report.during.peak)
                    $0.field("after_mean", report.after.mean)
                    $0.field("after_peak", report.after.peak)
                    $0.field("after_to_steady", report.ratio)
                    $0.field("caught_up", report.hasCaughtUp)
                }
            }
        }
        return json.bytes
    }
}
