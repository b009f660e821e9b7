// `waypost-bench fleet`: what a server sees of a fleet around an outage.
import ArgumentParser
import Daemon
import Glibc
import Host

struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Simulate a fleet before, during and after an outage of its server.",
        discussion: """
            Runs the gateway's own pacing (grid, backoff, Retry-After, portions of a backlog) on a virtual \
            clock and counts requests per second at the server. Exit status: 0 when no outage is followed by \
            more than twice the steady rate, 1 otherwise.
            """
    )

    @Option(help: "Gateways in the fleet.") var gateways = 1000
    @Option(help: "How long the server is away: 90s, 30m, 2h.") var outage = "2h"
    @Option(help: "Time between two syncs of a gateway.") var interval = "5m"
    @Option(help: "One kind of outage instead of all of them: \(Self.kinds).") var kind: String?
    @Option(help: "Starts the random numbers; the same seed gives the same result.")
    var seed: UInt64 = 1
    @Option(help: "Draw requests over time into this SVG file.") var plot: String?
    @Flag(help: "JSON instead of the table.") var json = false

    private static var kinds: String {
        OutageKind.allCases.map(\.rawValue).joined(separator: ", ")
    }

    mutating func validate() throws {
        guard (1...100_000).contains(gateways) else {
            throw ValidationError("--gateways from 1 to 100000")
        }
        for text in [outage, interval] where Self.duration(text) == nil {
            throw ValidationError("\(text): not a time from 10s to 48h, such as 90s, 30m, 2h")
        }
        if let kind, OutageKind(rawValue: kind) == nil {
            throw ValidationError("--kind is one of \(Self.kinds)")
        }
    }

    mutating func run() throws {
        let kinds = kind.flatMap { OutageKind(rawValue: $0) }.map { [$0] } ?? OutageKind.allCases
        var plan = FleetPlan()
        plan.gateways = gateways
        plan.outage = Self.duration(outage) ?? plan.outage
        plan.interval = Self.duration(interval) ?? plan.interval
        plan.before = max(.seconds(3600), plan.interval * 6)
        plan.after = max(.seconds(4 * 3600), plan.outage * 2)
        plan.seed = seed
        let reports = kinds.map { kind in
            plan.kind = kind
            var simulation = FleetSimulation(plan)
            simulation.run()
            return FleetReport(simulation)
        }
        if let plot { try Self.write(FleetPlot(reports: reports).svg, to: plot) }
        Output.write(
            json
                ? String(decoding: FleetReport.json(reports), as: UTF8.self) + "\n"
                : FleetReport.table(reports)
        )
        if reports.contains(where: { $0.ratio > FleetReport.limit }) { throw ExitCode(1) }
    }

    /// nil for anything but a whole number of s, m or h within reason.
    private static func duration(_ text: String) -> Duration? {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int(text.dropLast()),
            (1...172_800).contains(count), (10...172_800).contains(count * unit)
        else { return nil }
        return .seconds(count * unit)
    }

    private static func write(_ text: String, to path: String) throws {
        guard let file = fopen(path, "w") else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
        let bytes = Array(text.utf8)
        let isWhole = fwrite(bytes, 1, bytes.count, file) == bytes.count
        guard fclose(file) == 0, isWhole else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
    }
}
