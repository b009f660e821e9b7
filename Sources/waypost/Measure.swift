// `waypost measure`: measures the running gateway and its board.
import ArgumentParser
import Field
import Glibc
import Host
import Setup
import Status

struct Measure: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure the running gateway and its board for some minutes.",
        discussion: """
            Prints memory, CPU, wake-ups, temperature, bytes written and sent, records, losses and clock \
            drift; what this board does not tell is named with the reason. Needs the group waypost and no \
            other right. The figures are for deploy/docs/measurements.md.

            Exit status: 0 done, 2 the gateway could not be asked or was restarted meanwhile.
            """ + examples("waypost measure", "waypost measure --minutes 30 --json board.json")
    )

    @Option(help: .value("N", "For how many minutes: 1 to 1440.")) var minutes = 10
    @Option(
        help: .value("FILE", "Also write one JSON object; - for standard output, without text."),
        completion: .file()
    )
    var json: String?
    /// Seconds in place of the minutes; for tests.
    @Option(help: .hidden) var seconds: Int?
    @OptionGroup var options: ConfigurationOptions

    func validate() throws {
        guard (1...1440).contains(minutes) else {
            throw ValidationError("--minutes takes 1 to 1440")
        }
    }

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        if let json, json != "-" { try expectWritable(json) }
        let measurement = try reporting("measure") {
            try measure(configuration, for: .seconds(seconds ?? minutes * 60))
        }
        if json != "-" { Output.write(measurement.text) }
        guard let json else { return }
        let bytes = measurement.json + [10]
        if json == "-" { return Output.write(bytes) }
        try reporting("measure") { try SmallFile.replace(json, bytes, mode: 0o644) }
    }

    /// Fails now, and not after the minutes, unless a file can be made.
    private func expectWritable(_ path: String) throws {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard access(folder, W_OK) != 0 else { return }
        let why = SystemError.last("access").reason
        throw failure("measure: \(path): \(why); name another file", status: 2)
    }

    private func measure(
        _ configuration: Configuration,
        for time: Duration
    ) throws -> BoardMeasurement {
        let progress = ProgressLine()
        defer { progress.clear() }
        return try BoardMeasurement(for: time) {
            try ControlClient(configuration).ask(ControlRequest(.measure))
        } wait: { pause, left in
            let end = SystemClock().now() + pause
            let clock = SystemClock()
            while case let rest = end - clock.now(), rest > .zero {
                let seconds = (left - pause + rest).milliseconds / 1000
                progress.show("measuring: \(span(Int(seconds))) left")
                usleep(UInt32(min(rest, .seconds(1)).nanoseconds / 1000))
            }
        }
    }
}
