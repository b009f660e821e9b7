// `waypost doctor`: checks each part that a field device needs, and says what to do.
import ArgumentParser
import Daemon
import Field
import Host
import Status

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check every part, and say what to do about each that fails.",
        discussion: """
            Checks the service, the disk, the card and its files, power supply, temperature, the clock, \
            Bluetooth, gpsd, one second of audio and the server, in at most 8 s; works with the gateway \
            running or not.

            Exit status: 0 all is well, 1 something to look at, 2 something failed.
            """
                + examples(
                    "waypost doctor",
                    "sudo waypost doctor    # also what only root may look at"
                )
    )

    @Flag(help: "One JSON object.") var json = false
    @Flag(help: "Leave the microphone alone.") var noSound = false
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        let configuration = try options.valuesOrDefaults()
        let input = DoctorInput(
            configuration,
            environment: Environment.all,
            version: currentVersion,
            program: "/proc/self/exe",
            listens: !noSound
        )
        input.useProxies()
        let isLive = Output.isTerminal && !json
        let examination = try Doctor(input) { if isLive { LevelMeter.show($0) } }
            .examine()
        if isLive { Output.write("\r\u{1B}[K") }
        if json {
            Output.write(examination.json + [10])
        } else {
            Output.write(examination.text(isColoured: Output.isColoured))
        }
        throw ExitCode(examination.state.exitStatus)
    }
}

/// A bar on the terminal that shows the audio level.
enum LevelMeter {
    /// The bar's width in characters, for -60 dBFS to full scale.
    private static let width = 40

    static func show(_ level: Double) {
        let filled = min(width, max(0, Int((level + 60) / 60 * Double(width))))
        let bar =
            String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        Output.write("\rsound [\(bar)] \(Int(level.rounded())) dBFS\u{1B}[K")
    }
}
