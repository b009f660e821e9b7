// `waypost import`: imports settings from a card or a stick; systemd runs it at boot and per stick.
import ArgumentParser
import Daemon
import Field
import Host
import Status

struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import the configuration from a folder of a card or a stick.",
        discussion: """
            Exit status: 0 done, 1 something on the card is wrong, 2 failed or no card is there yet; with \
            --online 1 to try again, 2 if the server refuses this device.
            """,
        shouldDisplay: false
    )

    @Argument(
        help: "The folder with waypost.toml and the secrets; of a stick, where it is mounted."
    )
    var folder: String
    @Flag(help: "It is a stick, with a folder waypost on it.") var stick = false
    @Flag(help: "Exchange an imported code, and ask the server for this device.")
    var online = false
    @Flag(help: "Restart the service after a change.") var restart = false
    @Option(help: .hidden) var credentials = "/etc/credstore"
    @Option(help: .hidden) var runtime = "/run/waypost"
    @Option(help: .hidden) var state = "/var/lib/waypost"
    @Option(help: .hidden) var systemctl = "/usr/bin/systemctl"
    @OptionGroup var options: ConfigurationOptions

    private var paths: ImportPaths {
        ImportPaths(
            configuration: options.config,
            credentials: credentials,
            runtime: runtime,
            state: state
        )
    }

    mutating func run() throws {
        let status = try reporting("import") { online ? try ask() : try takeOver() }
        throw ExitCode(status)
    }

    private func takeOver() throws -> Int32 {
        let outcome = try CardImport(folder, on: stick ? .stick : .card, into: paths).run()
        for name in outcome.imported { Output.write("\(name): in force\n") }
        for problem in outcome.problems { Output.error("\(problem)") }
        if !outcome.imported.isEmpty || paths.isServiceBehind { restartService() }
        if outcome.isLater { return 2 }
        return outcome.problems.isEmpty ? 0 : 1
    }

    private func ask() throws -> Int32 {
        var enrolment = CardEnrolment(paths, version: currentVersion)
        enrolment.isIsolated = true
        let outcome: CardEnrolment.Outcome
        do {
            outcome = try enrolment.run(on: folder)
        } catch let error as SystemError {
            // The disk may be full or read-only only for now.
            Output.error("import: \(error)")
            return 1
        }
        if outcome.hasNewToken || paths.isServiceBehind { restartService() }
        guard let problem = outcome.problem else { return 0 }
        Output.error("\(problem)")
        return outcome.isLater ? 1 : 2
    }

    /// Restarts the service, which receives its credentials when it starts.
    ///
    /// Starts a service that failed because its configuration was invalid, as nothing else would.
    /// Leaves one stopped that a person has stopped.
    private func restartService() {
        guard restart else { return }
        let hasFailed = runSystemctl("--quiet", "is-failed", "waypost.service")
        runSystemctl("--no-block", hasFailed ? "start" : "try-restart", "waypost.service")
        if !online { runSystemctl("--no-block", "restart", "waypost-enroll.service") }
        paths.recordServiceRestarted()
    }

    @discardableResult
    private func runSystemctl(_ words: String...) -> Bool { ServiceCommand.run(systemctl, words) }
}
