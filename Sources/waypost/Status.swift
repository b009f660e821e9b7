// `waypost status`: shows the gateway's state on one screen or as JSON.
import ArgumentParser
import Daemon
import Host
import Setup
import Status
import StatusBoard

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the state of the gateway.",
        discussion: "Exit status: 0 healthy, 1 degraded, 2 critical or not running."
    )

    @Flag(help: "One JSON object.") var json = false
    @Flag(help: "Keep running and show each change.") var watch = false
    @OptionGroup var options: ConfigurationOptions

    /// The time without a change after which the daemon is asked whether it still answers.
    private static let silence = Duration.seconds(5)

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        do {
            let client = try ControlClient(configuration, patience: ControlClient.statusPatience)
            let report = try client.status()
            show(report)
            guard watch else { throw ExitCode(report.state.exitStatus) }
            try follow(client, configuration)
        } catch let refusal as ControlRefusal {
            throw showLast(configuration, refusal, why: "\(refusal)")
        } catch let failure as Failure {
            // The daemon serves too many programs already.
            let refusal = ControlRefusal.silent(path: configuration.socketPath, pid: 0)
            throw showLast(configuration, refusal, why: failure.message)
        }
    }

    /// Shows each change; after a silence, asks whether the daemon still answers.
    private func follow(_ client: ControlClient, _ configuration: Configuration) throws {
        var request = ControlRequest(.watch)
        var isSilent = false
        while true {
            do {
                let reply = try client.ask(request, timeout: ControlClient.statusPatience)
                request = ControlRequest(.status)
                reply.status.map { show($0) }
            } catch let refusal as ControlRefusal
                where refusal.isRunning == true && !client.isClosed
            {
                isSilent = true
                _ = showLast(configuration, refusal, why: "\(refusal)")
            }
            // A silent daemon is not asked again until it has answered.
            while let reply = client.next(timeout: isSilent ? nil : Self.silence) {
                isSilent = false
                reply.status.map { show($0) }
            }
            if client.isClosed { throw client.lost }
        }
    }

    /// Shows the last known state of a daemon that cannot be asked.
    private func showLast(
        _ configuration: Configuration,
        _ refusal: ControlRefusal,
        why: String
    ) -> ExitCode {
        let isThere = Snapshot.isThere(configuration)
        // The screen of a stopped daemon says so itself.
        if refusal.isRunning != false || !isThere { Output.error(why) }
        // A script gets a JSON object in any case.
        if isThere || json {
            let version = currentVersion
            show(Snapshot.report(configuration, refusal, version: version), isLive: false)
        }
        return ExitCode(StatusReport.Health.critical.exitStatus)
    }

    private func show(_ report: StatusReport, isLive: Bool = true) {
        guard !json else { return Output.write(report.json + [10]) }
        let screen = StatusScreen(
            report,
            isLive: isLive,
            now: SystemClock().wall(),
            isColoured: Output.isColoured
        )
        // Cursor home, draw, clear the rest: this does not flicker.
        if watch, Output.isTerminal {
            let lines = screen.text.split(separator: "\n", omittingEmptySubsequences: false)
            Output.write("\u{1B}[H" + lines.joined(separator: "\u{1B}[K\n") + "\u{1B}[J")
        } else {
            Output.write(screen.text)
        }
    }
}
