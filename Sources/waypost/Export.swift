// `waypost export`: writes records on this device to files.
import ArgumentParser
import Daemon
import Field
import Host

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write records on this device for other programs.",
        discussion: """
            Exports the records still on this device, uploaded or not, with the gateway running or not; \
            changes nothing. csv and ndjson are for every stream, gpx and geojson for location, wav and ogg \
            for audio (one file per chunk, in the folder of --output).

            Exit status: 0 done, 1 some records cannot be read, 2 failed.
            """
    )

    @Argument(help: "location, audio, beacons, events, surveys, or a stream of your own.")
    var stream: String
    @Option(help: "ndjson, csv, gpx, geojson, wav or ogg.") var format = ExportFormat.ndjson
    @Option(help: "From this time on (UTC): 2026-11-22, 2026-11-22T04:30:00Z, or 90m, 12h, 3d ago.")
    var since: String?
    @Option(help: "Before this time.") var until: String?
    @Option(help: "A file, or a folder for audio; standard output without it.") var output: String?
    @Option(help: "Read this database, such as a quarantined one.") var database: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws {
        for text in [since, until].compactMap({ $0 }) where Self.time(text) == nil {
            throw ValidationError(
                "\"\(text)\" is not a valid time; use 2026-11-22, 2026-11-22T04:30:00Z, or 90m, 12h, 3d ago"
            )
        }
        if let since, let until, let from = Self.time(since), let end = Self.time(until),
            from >= end
        {
            throw ValidationError(
                "--since \(since) is not before --until \(until): the time range is empty"
            )
        }
    }

    mutating func run() throws {
        let configuration = try options.loadOrAsk(warns: false).values
        var request = ExportRequest(stream: stream, format: format)
        request.since = since.flatMap { Self.time($0) }
        request.until = until.flatMap { Self.time($0) }
        request.output = output
        request.database = database
        let progress = ProgressLine()
        let outcome = try reporting("export") {
            try Export(request, configuration) {
                progress.show("\($0) records, \(Int($1 * 100)) %")
            }.run()
        }
        progress.clear()
        if output != nil { Output.error("\(outcome.records) records") }
        if outcome.asRecorded > 0 {
            Output.error(
                "\(outcome.asRecorded) files are as they were recorded, not \(format.rawValue)"
            )
        }
        guard outcome.unreadable == 0 else {
            Output.error("\(outcome.unreadable) records cannot be read")
            throw ExitCode(1)
        }
    }

    /// Parses a timestamp, a day (its start in UTC), or a time span before now.
    static func time(_ text: String) -> WallTime? {
        if let time = WallTime(rfc3339: text) ?? WallTime(rfc3339: text + "T00:00:00Z") {
            return time
        }
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()),
            (0...10_000_000).contains(count)
        else { return nil }
        return SystemClock().wall() + .seconds(-count * unit)
    }
}

extension ExportFormat: ExpressibleByArgument {}
