// `waypost card-note`: writes waypost-ok.txt on the card; systemd runs it at boot.
import ArgumentParser
import Configuration
import Daemon
import Field
import Host
import Setup
import Status

struct CardNote: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "card-note",
        abstract: "Write on a card how the start went, once that is known.",
        discussion: "Exit status: 0 done, or the card cannot be written to, 2 failed.",
        shouldDisplay: false
    )

    @Argument(help: "The folder of the card.") var folder: String
    @Option(help: "After this many seconds, write what is known.") var patience = 300
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        let paths = ImportPaths(
            configuration: options.config,
            credentials: "/etc/credstore",
            runtime: "/run/waypost"
        )
        let note = StartNote(on: folder, paths)
        guard note.isPossible else {
            return Output.error(
                "card-note: \(folder) is not mounted for writing: nothing is written"
            )
        }
        try reporting("card-note") {
            try note.clear()
            let report = waitForStart()
            // It may have been taken out, or become read-only, since.
            guard note.isPossible else { return }
            try note.write(report, at: SystemClock().wall())
        }
    }

    /// Returns the state once all sources and the server have answered, or as it is after a time.
    ///
    /// nil if the gateway does not answer then.
    private func waitForStart() -> StatusReport? {
        let clock = SystemClock()
        let end = clock.now() + .seconds(max(0, patience))
        while true {
            let report = ask()
            if let report, StartNote.isWhole(report, at: clock.wall()) { return report }
            guard clock.now() < end else { return report }
            var none: [PollEntry] = []
            _ = wait(for: &none, timeout: .seconds(2))
        }
    }

    /// Asks the gateway; reads the configuration each time, as an import may replace it.
    private func ask() -> StatusReport? {
        let loaded = try? Configuration.load(path: options.config, environment: Environment.all)
        let running = {
            Configuration.ofRunningGateway(path: options.config, environment: Environment.all)
        }
        guard let configuration = loaded?.values ?? running() else { return nil }
        return try? ControlClient(configuration).status()
    }
}
