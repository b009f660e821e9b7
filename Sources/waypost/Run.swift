// `waypost run`: runs the gateway in the foreground.
import ArgumentParser
import CLinux
import Configuration
import Daemon
import Host
import Setup
import Status
import StatusBoard

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the gateway in the foreground.",
        discussion: "SIGTERM and SIGINT stop it within 5 s; SIGHUP reads the configuration again."
            + examples(
                "waypost run --config FILE",
                "sudo systemctl restart waypost    # the service"
            )
    )

    @OptionGroup var options: ConfigurationOptions

    /// Seconds that a thread may hang before that is reported; for tests.
    @Option(help: .hidden) var patience = 30

    mutating func run() throws {
        // Before any thread starts, so that all of them leave the signals to this one.
        let signals = waypost_take_signals()
        Heap.share()
        var loaded = try options.load(warns: false)
        if loaded.values.countStart() { loaded = try options.load(warns: false) }
        let configuration = loaded.values
        let log = Log(level: configuration.logLevel)
        for warning in loaded.warnings { log.warning("configuration", ["why": "\(warning)"]) }
        do {
            var settings = GatewaySettings(
                configuration: configuration,
                environment: Environment.all,
                version: currentVersion,
                log: log
            )
            settings.patience = .seconds(max(1, patience))
            let path = options.config
            settings.doctor = [
                "/proc/self/exe", "doctor", "--json", "--no-sound", "--config", path,
            ]
            settings.trying = { version in
                let environment = Environment.all
                return try Configuration.load(
                    path: path,
                    environment: environment,
                    trying: version
                ).values
            }
            let gateway = try GatewayRun(settings)
            let hasEnded = try gateway.run(signals: signals) {
                let loaded = try Configuration.load(path: path, environment: Environment.all)
                for warning in loaded.warnings {
                    log.warning("configuration", ["why": "\(warning)"])
                }
                return loaded.values
            }
            // `exit` handlers would unload libraries under threads that hang in them.
            if !hasEnded { _exit(0) }
        } catch {
            Output.error("waypost: \(error)")
            StartErrorFile.write("\(error)", configuration)
            // For the same reason: a start that failed late has threads already.
            _exit(2)
        }
    }
}
