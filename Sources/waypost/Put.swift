// `waypost put`: stores records of other programs in the queue.
import ArgumentParser
import Configuration
import Daemon
import Glibc
import Host
import Intake
import Setup

struct Put: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Store records of your own in the queue: one JSON object per line.",
        discussion: """
            The stream is a table [stream.NAME] in the configuration. Returns when all records are on the disk; \
            each refused line is reported by its number. A record is dated when the gateway receives it. Input \
            faster than the stream's max_rate is slowed down. While the gateway is away, put waits for it and \
            continues with the same line.

            Exit status: 0 all were accepted, 1 otherwise.
            """
                + examples(
                    "echo '{\"temperature_c\": 21.5}' | waypost put weather",
                    "waypost put weather --file readings.ndjson"
                )
    )

    @Argument(
        help: .value("STREAM", "The stream, as the configuration names it."),
        completion: CompletedNames.declared.completion
    )
    var stream: String
    @Option(
        name: .long,
        help: .value("FILE", "Read this file instead of standard input."),
        completion: .file()
    )
    var file: String?
    @Flag(
        help: "Refuse lines that come faster than the stream's max_rate, instead of slowing down."
    )
    var noWait = false
    @Option(
        help: .value(
            "TIME",
            """
            Give up when the gateway has accepted nothing for this long: 30s, 5m. Without it, put waits for \
            ever, but ends at once if the gateway is not running at the start.
            """
        )
    )
    var timeout: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws {
        if let timeout { try expectTimeout(timeout) }
    }

    mutating func run() throws {
        let (configuration, isRight) = try options.loadOrAsk(warns: false)
        let declared = try declaredStream(
            stream,
            configuration,
            options.config,
            isRight: isRight
        )
        let input = try openInput()
        let progress = ProgressLine()
        let client = IntakeClient(
            configuration,
            stream: declared,
            options: intake,
            warn: { progress.say($0) },
            progress: { progress.show(Self.message($0)) }
        )
        let outcome: IntakeClient.Outcome
        do {
            outcome = try client.put(from: input)
        } catch {
            progress.say("\(error)")
            throw ExitCode(1)
        }
        if progress.isShown { progress.say(Self.message(outcome)) }
        if outcome.refused > 0 { throw ExitCode(1) }
    }

    private var intake: IntakeClient.Options {
        var options = IntakeClient.Options()
        options.waitsForRate = !noWait
        options.timeout = timeout.flatMap { duration(of: $0) }
        return options
    }

    private static func message(_ outcome: IntakeClient.Outcome) -> String {
        let refused = outcome.refused > 0 ? ", \(outcome.refused) refused" : ""
        return "\(outcome.accepted) on the disk\(refused)"
    }

    /// Opens the input; the descriptor stays open until the process ends.
    private func openInput() throws -> Int32 {
        guard let file, file != "-" else { return STDIN_FILENO }
        let number = open(file, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw failure("\(SystemError.last("open", on: file))", status: 1) }
        return number
    }
}

/// Returns a declared stream, or ends the command with what to do.
///
/// `isRight` false: a gateway runs with an earlier configuration, and knows its streams.
func declaredStream(
    _ name: String,
    _ configuration: Configuration,
    _ path: String,
    isRight: Bool = true
) throws -> UserStream {
    let streams = configuration.userStreams
    if let declared = streams.first(where: { $0.name == name }) { return declared }
    if !isRight, UserStream.problem(withName: name) == nil { return UserStream(name: name) }
    let known =
        streams.isEmpty
        ? "no stream is" : "declared: \(streams.map(\.name).joined(separator: ", "))"
    if let near = nearest(to: name, among: streams.map(\.name)) {
        Output.error("stream \(name.blanked) is not declared; did you mean \(near)? (\(known))")
        throw ExitCode(1)
    }
    let step =
        UserStream.problem(withName: name).map { "\($0); choose another name" }
        ?? "add [stream.\(name)] to \(path), then `systemctl reload waypost`"
    Output.error("stream \(name.blanked) is not declared (\(known)); \(step)")
    throw ExitCode(1)
}
