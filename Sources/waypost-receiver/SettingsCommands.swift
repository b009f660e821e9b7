// `waypost-receiver settings`: gives devices settings, and shows what became of them.
import ArgumentParser
import Glibc
import Host
import JSON
import ServerArchive

struct SettingsCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings",
        abstract: "Change the settings of devices, and see what became of them.",
        discussion: """
            The receiver may be running. A device takes settings if its own configuration allows that \
            (remote.allow = ["settings"]). They lie above its waypost.toml, and each version replaces the one before.

              waypost-receiver settings set 9f3c2a70 quiet.toml
              waypost-receiver settings show 9f3c2a70
            """,
        subcommands: [
            Change.self, Clear.self, Show.self, List.self, RolloutCommands.self, SettingsSign.self,
        ]
    )

    struct Change: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Give a device a new version of its settings, and print its number.",
            discussion: """
                The device gets it at its next upload. An older version that it has not answered is withdrawn.
                """
        )

        @OptionGroup var options: SettingsOptions
        @Argument(help: "The settings, TOML of at most 32 kB; - is standard input.")
        var file: String

        func run() throws { try options.set(file) }
    }

    struct Clear: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give a device a new, empty version: its own file alone."
        )

        @OptionGroup var options: SettingsOptions

        func run() throws { try options.set(nil) }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the newest version of a device's settings, its state and its text."
        )

        @OptionGroup var known: KnownDevice
        @Flag(help: "Print one JSON object.") var json = false

        func run() throws {
            let device = known.device
            let found = try known.perform { try $0.settings(of: device).first }
            guard let found else {
                throw known.place.failure("\(device) has no settings; see `settings set --help`")
            }
            let line = SettingsLine(found)
            print(json ? String(decoding: encodedJSON(line), as: UTF8.self) : line.facts(found))
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the devices that were given settings."
        )

        @OptionGroup var place: DataLocation
        @Flag(help: "Print one JSON object.") var json = false

        func run() throws {
            try place.expectThere()
            let all = try place.orFail { try DeviceJobs(directory: place.data).settings() }
            let lines = all.map { SettingsLine($0) }
            let object = encodedJSON(["devices": lines])
            print(json ? String(decoding: object, as: UTF8.self) : SettingsLine.table(lines))
        }
    }
}

/// The device that gets a version, and what belongs to the version besides its text.
struct SettingsOptions: ParsableArguments {
    @OptionGroup var known: KnownDevice
    @Option(help: ArgumentHelp("Days until an unanswered version expires.", valueName: "days"))
    var expires = 30
    @Option(
        help: ArgumentHelp("The signature of this version by minisign(1).", valueName: "file")
    )
    var signature: String?
    @Option(help: ArgumentHelp("The version; without it the next one.", valueName: "n"))
    var version: Int64?

    mutating func validate() throws {
        guard signature != nil, version == nil else { return }
        throw ValidationError("a signature covers the version's number; add --version N")
    }

    /// Adds a version with the text of a file, nil: an empty one.
    func set(_ file: String?) throws {
        // Later, root becomes a user who may not be able to read the files.
        let (text, signature) = try known.place.orFail {
            (
                try file.map { try Self.settings($0) } ?? "",
                try self.signature.map { try Self.read($0, limit: DeviceJobs.maxSignature) }
            )
        }
        let (device, end) = (known.device, KnownDevice.end(inDays: expires))
        let number = try known.perform { jobs in
            try jobs.setSettings(
                of: device,
                text,
                signature: signature,
                version: version,
                until: end
            )
        }
        print("version \(number)")
        report(
            "\(device) gets it at its next upload, until \(end.rfc3339.prefix(10)), and tries it: it "
                + "keeps it after two accepted uploads with all sources healthy, else it rolls it "
                + "back; see `settings show \(device)`"
        )
    }

    /// Reads a file of settings; throws a `Failure` with a line for each mistake in it.
    static func settings(_ path: String) throws -> String {
        let text = try read(path, limit: DeviceJobs.maxSettings)
        let name = path == "-" ? "standard input" : path
        let errors = DeviceSettings.errors(in: text, from: name)
        guard errors.isEmpty else { throw Failure(errors.joined(separator: "\n")) }
        return text
    }

    static func read(_ path: String, limit: Int) throws -> String {
        let isInput = path == "-"
        let name = isInput ? "standard input" : path
        let bytes =
            try isInput
            ? readAll(from: STDIN_FILENO, limit: limit + 1, name)
            : SmallFile.read(path, limit: limit, wait: true).bytes
        return try DeviceSettings.text(bytes, limit: limit, from: name)
    }
}

/// A device's settings as they are printed; in snake case its members are those of the JSON object.
private struct SettingsLine: Encodable {
    let deviceId: String
    let version: Int64
    let state: String
    let at: String
    let message: String?
    let inForce: Int64?
    let text: String

    init(_ settings: DeviceSettings) {
        (deviceId, version, text) = (settings.device, settings.version, settings.text)
        (state, at) = (settings.state.rawValue, settings.at.rfc3339)
        (message, inForce) = (settings.message.isEmpty ? nil : settings.message, settings.inForce)
    }

    /// The facts, each on a line, and the version's text.
    func facts(_ settings: DeviceSettings) -> String {
        let reason = message.map { ": \($0)" } ?? ""
        return """
            version   \(version)
            state     \(settings.state.words) \(TextTable.minute(at))\(reason)
            in force  \(settings.inForceWords)

            \(text.isEmpty ? "(empty: \(DeviceSettings.ownFile))" : text)
            """
    }

    static func table(_ lines: [Self]) -> String {
        guard !lines.isEmpty else { return "no device was given settings yet" }
        let heads = ["DEVICE", "WANTED", "STATE", "SINCE", "IN FORCE"]
        let rows = lines.map { line in
            [
                line.deviceId, "\(line.version)", line.state.replacing("_", with: " "),
                TextTable.minute(line.at), line.inForce.map { "\($0)" } ?? "-",
            ]
        }
        return TextTable(rows: [heads] + rows).text
    }
}
