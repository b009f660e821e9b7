// `waypost-receiver config`: checks and prints the configuration.
import ArgumentParser
import Configuration

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check or print the configuration file.",
        subcommands: [Check.self, Show.self, Default.self]
    )

    struct File: ParsableArguments {
        @Option(help: "The configuration file.") var config = ReceiverSettings.path

        /// Ends the command with status 78 and all errors.
        func load() throws -> Loaded<ReceiverSettings> {
            do {
                return try ReceiverSettings.load(config)
            } catch {
                report("\(error)")
                throw ExitCode(78)
            }
        }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check the file: every error at once, with its line."
        )
        @OptionGroup var file: File

        func run() throws {
            let loaded = try file.load()
            // The combinations of keys that are forbidden.
            do {
                _ = try Serve.parseAsRoot(ServeArguments.options(loaded.values))
            } catch {
                report("\(file.config): as options: \(Serve.message(for: error))")
                throw ExitCode(78)
            }
            let listen = loaded.values.listen
            if loaded.values.isBehindProxy, ListenAddress(listen)?.isLoopback != true {
                report(
                    "\(file.config): warning: with behind_proxy, whoever reaches \(listen) without the proxy can "
                        + "give any client address; listen on 127.0.0.1, or keep others off that port"
                )
            }
            print("\(file.config): ok")
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the effective values, and where each comes from."
        )
        @OptionGroup var file: File

        func run() throws { print(ReceiverSettings.table.shown(try file.load()), terminator: "") }
    }

    struct Default: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a full commented file with the defaults."
        )

        func run() { print(ReceiverSettings.defaultText, terminator: "") }
    }
}
