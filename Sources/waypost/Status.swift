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
        discussion: "Exit status: 0 healthy, 1 degraded, 2 critical, not running or unknown."
            + examples(
                "waypost status",
                "waypost status --watch",
                "waypost status --json | jq .upload"
            )
    )

    @Flag(help: "One JSON object.") var json = false
    @Flag(help: "Keep running and show each change; q ends it.") var watch = false
    @OptionGroup var options: ConfigurationOptions

    /// The time without a change after which the daemon is asked whether it still answers.
    private static let silence = Duration.seconds(5)

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        let isOnScreen = watch && !json && Output.isTerminal
        let screen = isOnScreen ? try WatchScreen() : nil
        defer { screen?.close() }
        let output = StatusOutput(isJSON: json, screen: screen)
        do {
            let client = try ControlClient(configuration, patience: ControlClient.statusPatience)
            let report = try client.status()
            output.show(report)
            guard watch else { throw ExitCode(report.state.exitStatus) }
            try follow(client, configuration, output)
        } catch let refusal as ControlError {
            screen?.close()
            throw showLast(configuration, refusal, "\(refusal)", StatusOutput(isJSON: json))
        } catch let failure as Failure {
            screen?.close()
            // The daemon serves too many programs already.
            let refusal = ControlError.silent(path: configuration.socketPath, pid: 0)
            throw showLast(configuration, refusal, failure.message, StatusOutput(isJSON: json))
        }
    }

    /// Shows each change; after a silence, asks whether the daemon still answers.
    private func follow(
        _ client: ControlClient,
        _ configuration: Configuration,
        _ output: StatusOutput
    ) throws {
        var request = ControlRequest(.watch)
        var isSilent = false
        while true {
            do {
                let reply = try client.ask(request, timeout: ControlClient.statusPatience)
                request = ControlRequest(.status)
                reply.status.map { output.show($0) }
            } catch let refusal as ControlError
                where refusal.isRunning == true && !client.isClosed
            {
                isSilent = true
                _ = showLast(configuration, refusal, "\(refusal)", output)
            }
            // A silent daemon is not asked again until it has answered.
            while let reply = client.next(timeout: isSilent ? nil : Self.silence) {
                isSilent = false
                reply.status.map { output.show($0) }
            }
            if client.isClosed { throw client.lost }
        }
    }

    /// Shows the last known state of a daemon that cannot be asked.
    private func showLast(
        _ configuration: Configuration,
        _ refusal: ControlError,
        _ why: String,
        _ output: StatusOutput
    ) -> ExitCode {
        let isThere = Snapshot.isThere(configuration)
        // The screen of a stopped daemon says so itself.
        if output.screen == nil, refusal.isRunning != false || !isThere { Output.error(why) }
        let report = Snapshot.report(configuration, refusal, version: currentVersion)
        // A script gets a JSON object in any case.
        if isThere || json { output.show(report, isLive: false) }
        return ExitCode(report.state.exitStatus)
    }
}

/// Where `status` writes: standard output, or the alternate screen.
private struct StatusOutput {
    var isJSON: Bool
    var screen: WatchScreen?

    func show(_ report: StatusReport, isLive: Bool = true) {
        guard !isJSON else { return Output.write(report.json + [10]) }
        let (now, isColoured, scrolls) = (SystemClock().wall(), Output.isColoured, screen == nil)
        let text = { @Sendable (columns: Int, rows: Int) in
            StatusScreen(
                report,
                isLive: isLive,
                now: now,
                isColoured: isColoured,
                columns: columns,
                rows: rows,
                scrolls: scrolls
            ).text
        }
        if let screen { return screen.draw(text, exitStatus: report.state.exitStatus) }
        let (columns, rows) = Output.terminalSize ?? (.max, 24)
        Output.write(text(columns, rows))
    }
}
