// `waypost put`: records of other programs into the queue.
import ArgumentParser
import Gateway
import Glibc
import Host

struct Put: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Put records of your own into the queue: a JSON object a line.",
        discussion: """
            The stream is a table [stream.NAME] in the configuration. Returns when all records are on the disk; \
            each line that is refused is told by its number. A record is dated when it is taken.

            Exit status: 0 all were accepted, 1 otherwise.
            """
    )

    @Argument(help: "The stream, as the configuration names it.") var stream: String
    @Option(name: .long, help: "Read this file, not standard input.") var file: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        let (configuration, isRight) = try options.loadOrAsk(warns: false)
        let declared = try declaredStream(configuration, isRight: isRight)
        let input = try openInput()
        let progress = ProgressLine()
        let client = IntakeClient(
            configuration,
            stream: declared,
            tell: { progress.say($0) },
            progress: { progress.show(Self.message($0)) }
        )
        do {
            let outcome = try client.put(from: input)
            if progress.isShown { progress.say(Self.message(outcome)) }
            if outcome.refused > 0 { throw ExitCode(1) }
        } catch let code as ExitCode {
            throw code
        } catch {
            progress.say("\(error)")
            throw ExitCode(1)
        }
    }

    private func declaredStream(
        _ configuration: Configuration,
        isRight: Bool
    ) throws -> UserStream {
        let streams = configuration.userStreams
        if let declared = streams.first(where: { $0.name == stream }) { return declared }
        // Which streams an earlier configuration declares the gateway knows.
        if !isRight, UserStream.problem(withName: stream) == nil { return UserStream(name: stream) }
        let known =
            streams.isEmpty
            ? "no stream is" : "declared: \(streams.map(\.name).joined(separator: ", "))"
        let step =
            UserStream.problem(withName: stream).map { "\($0); choose another name" }
            ?? "add [stream.\(stream)] to \(options.config), then `systemctl reload waypost`"
        Output.error("stream \(stream.blanked) is not declared (\(known)); \(step)")
        throw ExitCode(1)
    }

    private static func message(_ outcome: IntakeClient.Outcome) -> String {
        let refused = outcome.refused > 0 ? ", \(outcome.refused) refused" : ""
        return "\(outcome.accepted) on the disk\(refused)"
    }

    /// A descriptor that stays open as long as the process.
    private func openInput() throws -> Int32 {
        guard let file, file != "-" else { return STDIN_FILENO }
        let number = open(file, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else {
            Output.error("\(SystemError.last("open", on: file))")
            throw ExitCode(1)
        }
        return number
    }
}
