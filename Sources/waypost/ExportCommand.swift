// `waypost export`: writes records on this device to files.
import ArgumentParser
import AudioTags
import Daemon
import Field
import Host
import Status

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write records on this device for other programs.",
        discussion: """
            Exports the records still on this device, uploaded or not, with the gateway running or not; \
            changes nothing. csv and ndjson are for every stream, gpx and geojson for location; wav, ogg, \
            flac and recorded are for audio (one file per chunk, in the folder of --output, named by device or \
            site, start and position, with GUANO metadata). A csv has a column for each reading, and a blank \
            between day and time.

            Exit status: 0 done, 1 some records cannot be read or converted, 2 failed.
            """
                + examples(
                    "waypost export location --format gpx --output track.gpx",
                    "waypost export beacons --format csv --since 12h --local --output today.csv",
                    "waypost export audio --output /media/stick/sound/"
                )
    )

    @Argument(
        help: .value(
            "STREAM",
            "location, audio, beacons, events, surveys, or a stream of your own."
        ),
        completion: CompletedNames.streams.completion
    )
    var stream: String
    @Option(
        help: .value(
            "FORMAT",
            "Without it ndjson, and audio into a folder as it was recorded."
        ),
        completion: .list(ExportFormat.allCases.map(\.rawValue))
    )
    var format: ExportFormat?
    @Option(
        help: .value(
            "TIME",
            "From this time on (UTC): 2026-11-22, 2026-11-22T04:30:00Z, or 90m, 12h, 3d ago."
        )
    )
    var since: String?
    @Option(help: .value("TIME", "Before this time.")) var until: String?
    @Flag(help: "Times of this device's time zone, also a day of --since and --until.")
    var local = false
    @Option(
        help: .value(
            "NAMES",
            "Of audio files: songmeter is SITE_YYYYMMDD_HHMMSS in the site's schedule_offset."
        )
    )
    var names = FileNames.waypost
    @Option(
        help: .value("PATH", "A file, or a folder for audio; standard output without it."),
        completion: .file()
    )
    var output: String?
    @Option(
        help: .value("FILE", "Read this database, such as a quarantined one."),
        completion: .file()
    )
    var database: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws {
        for text in [since, until].compactMap({ $0 }) where time(text) == nil {
            throw ValidationError(
                "\"\(text)\" is not a valid time; use 2026-11-22, 2026-11-22T04:30:00Z, or 90m, 12h, 3d ago"
            )
        }
        if let since, let until, let from = time(since), let end = time(until),
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
        request.since = since.flatMap { time($0) }
        request.until = until.flatMap { time($0) }
        if local { request.localOffset = { WallTime.localOffset(at: $0) } }
        (request.output, request.names) = (output, names)
        request.database = database
        request.version = currentVersion
        let progress = ProgressLine()
        let outcome = try reporting("export") {
            try Export(
                request,
                configuration,
                progress: { progress.show("\(counted($0, "record")), \(Int($1 * 100)) %") },
                complain: { progress.say("export: \($0)") }
            )
            .run()
        }
        progress.clear()
        if output != nil { Output.error(counted(outcome.records, "record")) }
        if outcome.asRecorded > 0 {
            let files = counted(outcome.asRecorded, "file")
            Output.error("\(files) written as recorded, not as \(format?.rawValue ?? "asked")")
        }
        guard outcome.unreadable == 0 else {
            let unreadable = counted(outcome.unreadable, "record")
            throw failure("\(unreadable) cannot be read or converted", status: 1)
        }
    }

    /// Parses a time of the options; with --local, a day begins at midnight of this device's zone.
    private func time(_ text: String) -> WallTime? {
        guard local, let midnight = WallTime(rfc3339: text + "T00:00:00Z") else {
            return Self.time(text)
        }
        let guess = midnight + .seconds(-WallTime.localOffset(at: midnight))
        // The offset may change on that day, between the two.
        return midnight + .seconds(-WallTime.localOffset(at: guess))
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
extension FileNames: ExpressibleByArgument {}
