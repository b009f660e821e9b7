// `waypost restart`: opens one source anew.
import ArgumentParser
import Gateway

struct Restart: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Open a source anew, without touching the others.",
        discussion: "What is missed meanwhile is entered. Exit status: 0 done, 2 failed."
    )

    @Argument(help: "beacons, location or audio.") var source: String
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws {
        let known = ["beacons", "location", "audio"]
        guard known.contains(source) else {
            throw ValidationError("no source \"\(source)\": \(known.joined(separator: ", "))")
        }
    }

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        let request = ControlRequest(.restart, source)
        _ = try reporting("restart") {
            try ControlClient(configuration).ask(request, timeout: .seconds(30))
        }
        Output.write("\(source) was opened anew; `waypost status` shows it\n")
    }
}
