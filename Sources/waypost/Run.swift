// `waypost run`: the gateway in the foreground.
import ArgumentParser
import Board
import CLinux
import Gateway

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the gateway in the foreground.",
        discussion: "SIGTERM and SIGINT stop it within 5 s; SIGHUP reads the configuration again."
    )

    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        // Before any thread is started, so that all of them leave the signals to this one.
        let signals = waypost_take_signals()
        let configuration = try options.load().values
        let log = Log(level: configuration.log.level)
        do {
            let gateway = try Gateway(
                GatewaySettings(
                    configuration: configuration,
                    environment: Environment.all,
                    version: Waypost.currentVersion,
                    log: log
                )
            )
            let path = options.config
            try gateway.run(signals: signals) {
                do {
                    return try Configuration.load(path: path, environment: Environment.all).values
                } catch {
                    log.error("configuration not reloaded, the old one stays", ["why": "\(error)"])
                    return nil
                }
            }
        } catch {
            Output.error("waypost: \(error)")
            throw ExitCode(2)
        }
    }
}
