// `waypost status`: how the gateway is, on one screen or as JSON.
import ArgumentParser
import Gateway
import Host

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show how the gateway is.",
        discussion: "Exit status: 0 healthy, 1 degraded, 2 critical or not running."
    )

    @Flag(help: "One JSON object.") var json = false
    @Flag(help: "Go on as the daemon tells of changes.") var watch = false
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        let configuration = try options.load().values
        guard let client = ControlClient(path: Gateway.socketPath(configuration)) else {
            throw try showSnapshot(configuration)
        }
        guard client.send(watch ? .watch : .status),
            let line = client.line(timeout: .seconds(10)), let report = StatusReport(json: line)
        else { throw try showSnapshot(configuration) }
        show(report, line)
        while watch, let line = client.line(timeout: .seconds(86_400 * 365)) {
            if let report = StatusReport(json: line) { show(report, line) }
        }
        if watch { throw try showSnapshot(configuration) }
        throw ExitCode(report.state.exitStatus)
    }

    /// The daemon is dead: what it left behind.
    private func showSnapshot(_ configuration: Configuration) throws -> ExitCode {
        guard let report = Snapshot.read(configuration) else {
            let path = Gateway.socketPath(configuration)
            Output.error(
                "waypost is not running (nothing answers at \(path)); `systemctl start waypost`"
            )
            // A script gets its object all the same.
            if json {
                let nothing = Snapshot.nothing(configuration, version: Waypost.currentVersion)
                Output.write(nothing.json + [10])
            }
            return ExitCode(2)
        }
        show(report, report.json)
        return ExitCode(report.state.exitStatus)
    }

    private func show(_ report: StatusReport, _ line: [UInt8]) {
        guard !json else { return Output.write(line + [10]) }
        let screen = StatusScreen(
            report,
            now: SystemClock().wall(),
            isColoured: Output.isColoured
        )
        // Home, draw, clear what is left of the screen before: no flicker.
        if watch, Output.isTerminal {
            let lines = screen.text.split(separator: "\n", omittingEmptySubsequences: false)
            Output.write("\u{1B}[H" + lines.joined(separator: "\u{1B}[K\n") + "\u{1B}[J")
        } else {
            Output.write(screen.text)
        }
    }
}
