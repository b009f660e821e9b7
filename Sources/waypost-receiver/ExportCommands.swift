// `waypost-receiver export`: the archive's audio for scientists' programs.
import ArgumentParser
import AudioTags
import Configuration
import Glibc
import Host
import ServerArchive
import ServerBase
import ServerExports

struct ExportCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write audio with names and metadata for science; the server may be running.",
        subcommands: [AudioExportCommand.self, CamtrapCommand.self]
    )
}

/// The options of all exports.
struct ExportOptions: ParsableArguments {
    @Option(help: ArgumentHelp("A new or an empty folder.", valueName: "dir"))
    var out: String
    @Option(help: "Only this device; may be repeated.") var device: [String] = []
    @Option(
        help: ArgumentHelp(
            "From this time on (UTC): 2026-11-01, 2026-11-01T04:30:00Z, or 30d ago.",
            valueName: "time"
        )
    )
    var since: ExportTime?
    @Option(help: ArgumentHelp("Before this time.", valueName: "time")) var until: ExportTime?
    @Option(
        help: ArgumentHelp(
            "Where a device was, such as lake-7=46.46,6.84; instead of the positions that it sent.",
            valueName: "id=lat,lon"
        )
    )
    var position: [DevicePosition] = []
    @Option(help: "Names of audio files: songmeter is DEVICE_YYYYMMDD_HHMMSS.")
    var names = FileNames.waypost
    @Option(
        // Its value may begin with a minus.
        parsing: .unconditional,
        help: ArgumentHelp(
            "The site's offset from UTC, such as +10:30, for times in names and metadata of audio.",
            valueName: "±hh:mm"
        ),
        transform: {
            guard let offset = minutes(ofOffset: $0) else { throw ValidationError("as +10:30") }
            return offset
        }
    )
    var offset = 0
    @OptionGroup var place: DataLocation

    mutating func validate() throws {
        if let since, let until, since.time >= until.time {
            throw ValidationError("--since is not before --until: the time range is empty")
        }
    }

    var scope: ExportScope {
        var scope = ExportScope()
        scope.devices = Set(device)
        (scope.since, scope.until) = (since?.time, until?.time)
        (scope.names, scope.offsetMinutes) = (names, offset)
        for position in position { scope.positions[position.device] = position.place }
        return scope
    }

    /// Runs an export as the owner of the data folder, and prints what it wrote.
    func perform(_ body: (ExportScope, @escaping (String) -> Void) throws -> ScienceOutcome) throws
        -> ScienceOutcome
    {
        try place.expectServed()
        let outcome = try place.orFail {
            try DataOwner.become(of: place.data, creating: out)
            let isShown = isatty(STDERR_FILENO) == 1
            return try body(scope) { line in if isShown { report(line) } }
        }
        if outcome.missing > 0 {
            complain("records left out because their audio was deleted: \(outcome.missing)")
        }
        if outcome.ahead > 0 {
            complain(
                "records left out because they are dated ahead of the server's clock: "
                    + "\(outcome.ahead) (grep -r '\"clock\":\"future\"' \(place.data)/stream=* shows them)"
            )
        }
        return outcome
    }

    /// Reports records that cannot be read, with exit status 1.
    func expectAllRead(_ outcome: ScienceOutcome) throws {
        guard outcome.unreadable > 0, let first = outcome.firstUnreadable else { return }
        throw place.failure(
            "records or audio files left out because they cannot be read: \(outcome.unreadable); "
                + "look first at \(place.data)/\(first)"
        )
    }
}

struct AudioExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audio",
        abstract: "Write one audio file per record, named by device, start and position.",
        discussion: "WAV has GUANO metadata, FLAC and Ogg have the same fields as comments."
    )

    @OptionGroup var options: ExportOptions

    func run() throws {
        let outcome = try options.perform { scope, progress in
            let export = try AudioExport(
                of: options.place.data,
                to: options.out,
                scope,
                progress: progress
            )
            return try export.run()
        }
        print("wrote \(outcome.files) files, \(outcome.bytes) bytes, to \(options.out)")
        try options.expectAllRead(outcome)
    }
}

struct CamtrapCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "camtrap-dp",
        abstract: "Write a Camtrap DP package: deployments, media, observations, failures.",
        discussion: """
            A deployment ends where the device was moved (by 100 m), or its schedule, sample rate or format changed. Failures \
            are the times that its effort calls failed, off or unknown. Observations are a detector's records with a species.
            """
    )

    @OptionGroup var options: ExportOptions
    @Option(help: "The title of package and project.") var title: String?
    @Option(help: "The name of the person or organisation to ask about it.") var contact: String?
    @Flag(help: "Copy no audio; `export audio` gives the files the same names.")
    var tablesOnly = false

    func run() throws {
        var request = CamtrapRequest(version: currentVersion)
        (request.title, request.contact, request.tablesOnly) = (title, contact, tablesOnly)
        let outcome = try options.perform { scope, progress in
            let package = try CamtrapPackage(
                of: options.place.data,
                to: options.out,
                scope,
                request,
                progress: progress
            )
            return try package.run()
        }
        print(
            "wrote \(outcome.deployments) deployments, \(outcome.files) files, "
                + "\(outcome.observations) observations and \(outcome.failures) failures to \(options.out)"
        )
        try options.expectAllRead(outcome)
    }
}

/// A time of an export: a day or a timestamp in UTC, or a number of days ago.
struct ExportTime: ExpressibleByArgument {
    var time: WallTime

    init?(argument: String) {
        if let days = KeptDays(argument: argument)?.days {
            time = SystemClock().wall() + .seconds(-86_400 * days)
        } else if let time = WallTime(rfc3339: argument)
            ?? WallTime(rfc3339: "\(argument)T00:00:00Z")
        {
            self.time = time
        } else {
            return nil
        }
    }
}

extension FileNames: ExpressibleByArgument {}

/// A device and its place: `lake-7=46.46,6.84`.
struct DevicePosition: ExpressibleByArgument {
    var device: String
    var place: SitePlace

    init?(argument: String) {
        let parts = argument.split(separator: "=", omittingEmptySubsequences: false)
        let numbers = parts.last?.split(separator: ",").compactMap { Double($0) } ?? []
        guard parts.count == 2, isName(String(parts[0])), numbers.count == 2,
            abs(numbers[0]) <= 90, abs(numbers[1]) <= 180
        else { return nil }
        device = String(parts[0])
        place = SitePlace(latitude: numbers[0], longitude: numbers[1])
    }
}
