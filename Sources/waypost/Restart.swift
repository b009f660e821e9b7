// `waypost restart`: restarts one source.
import ArgumentParser
import Daemon
import Status

struct Restart: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Restart a source, without touching the others.",
        discussion: "Missed data is recorded as a loss. Exit status: 0 done, 2 failed."
            + examples("waypost restart audio")
    )

    @Argument(
        help: .value("SOURCE", "beacons, location or audio."),
        completion: .list(["beacons", "location", "audio"])
    )
    var source: String
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws {
        let known = ["beacons", "location", "audio"]
        guard known.contains(source) else {
            throw ValidationError(
                "\"\(source)\" is not a source; use \(known.joined(separator: ", "))"
            )
        }
    }

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        let request = ControlRequest(.restart, source)
        _ = try reporting("restart") {
            try ControlClient.answering(configuration).ask(request, timeout: .seconds(30))
        }
        Output.write("\(source) was restarted; `waypost status` shows it\n")
    }
}
