// `waypost complete`: prints the names that a shell offers for an argument.
import ArgumentParser
import Configuration
import Daemon
import Records
import Setup
import Status

/// The names that the shell completes; it runs `waypost complete` when the key is pressed.
enum CompletedNames: String, CaseIterable, ExpressibleByArgument {
    /// All streams of this device.
    case streams
    /// Those that `waypost put` takes.
    case declared
    case surveys

    var completion: CompletionKind { .shellCommand("waypost complete \(rawValue) 2>/dev/null") }
}

struct Complete: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the names that the shell completes, one per line.",
        shouldDisplay: false
    )

    @Argument(help: "streams, declared or surveys.") var names: CompletedNames
    @OptionGroup var options: ConfigurationOptions

    /// Prints nothing for a question that this user or this device cannot answer.
    mutating func run() {
        let loaded = try? Configuration.load(path: options.config, environment: Environment.all)
        guard let configuration = loaded?.values ?? options.defaults else { return }
        let declared = configuration.userStreams.map(\.name)
        switch names {
        case .streams: show(StreamList().streams.map(\.name) + declared)
        case .declared: show(declared)
        case .surveys:
            let records = try? QueueQuestions(configuration).finishedSurveys()
            show((records ?? []).map(\.name))
        }
    }

    /// bash expands the words of a completion, as in `$(…)`: other characters are not printed.
    private func show(_ names: [String]) {
        var seen: Set<String> = []
        for name in names where SurveyName.problem(with: name) == nil {
            if seen.insert(name).inserted { Output.write("\(name)\n") }
        }
    }
}
