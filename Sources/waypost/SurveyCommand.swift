// `waypost survey`: starts, stops and shows surveys, which are sessions of collecting.
import ArgumentParser
import Daemon
import Host
import Status

struct SurveyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "survey",
        abstract:
            "Summarise the beacons heard between a start and a stop, and where they were heard.",
        discussion:
            "A survey survives restarts; list and show work without a running daemon, too. Exit status: 0 done, 2 failed."
            + examples("waypost survey start \"north shore\"", "waypost survey stop"),
        subcommands: [Start.self, Stop.self, List.self, Show.self]
    )

    struct Start: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Begin a survey.",
            discussion: examples("waypost survey start \"north shore\"")
        )

        @Argument(help: .value("NAME", "Its name: letters, digits, blanks, and . _ -")) var name:
            String
        @OptionGroup var options: ConfigurationOptions

        mutating func validate() throws {
            if let problem = SurveyName.problem(with: name) {
                throw ValidationError(problem)
            }
        }

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let request = ControlRequest(.surveyStart, name)
            _ = try reporting("survey") { try queue.change(request) }
            Output.write("survey \"\(name)\" started; `waypost survey stop` ends it\n")
        }
    }

    struct Stop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End the survey and publish its record.",
            discussion: examples("waypost survey stop")
        )

        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let reply = try reporting("survey") { try queue.change(.init(.surveyStop)).survey }
            let name = reply?.open ?? ""
            Output.write(
                "survey \"\(name)\" is over: \(counted(reply?.sightings ?? 0, "sighting")); `waypost survey show \"\(name)\"`\n"
            )
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the open survey and the finished ones.",
            discussion: examples("waypost survey list")
        )

        @Flag(help: "One JSON object.") var json = false
        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let open = try reporting("survey") { try queue.survey() }
            let records = try reporting("survey") { try queue.finishedSurveys() }
            if json { return Output.write(SurveyList.json(open, records) + [10]) }
            Output.write(queue.hasRecorded ? SurveyScreen.list(open, records) : nothingRecorded)
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show what a survey found: the newest of that name.",
            discussion: examples("waypost survey show \"north shore\"")
        )

        @Argument(
            help: .value("NAME", "Its name."),
            completion: CompletedNames.surveys.completion
        )
        var name: String
        @Flag(help: "Its record as one JSON object.") var json = false
        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let records = try reporting("survey") { try queue.finishedSurveys() }
            guard let record = records.last(where: { $0.name == name }) else {
                Output.error(
                    "survey: no finished survey is named \"\(name)\"; `waypost survey list` shows them"
                )
                throw ExitCode(2)
            }
            guard json else { return Output.write(SurveyScreen.show(record)) }
            Output.write(record.json + [10])
        }
    }
}
