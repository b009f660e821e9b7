// `waypost config`: checks and prints the configuration.
import ArgumentParser
import Daemon
import Setup

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check or print the configuration.",
        subcommands: [Check.self, Show.self, Default.self, Manual.self]
    )

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check the file: every error at once, with its line."
        )

        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            _ = try options.load()
            Output.write("\(Configuration.inForce(options.config)): ok\n")
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the effective values, and where each comes from."
        )

        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            Output.write(try options.load().shown)
        }
    }

    /// Prints the list of keys in deploy/man/waypost.toml.5.scd, for developers who change a key.
    struct Manual: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the list of keys of waypost.toml(5), in scdoc(5).",
            shouldDisplay: false
        )

        mutating func run() {
            Output.write(Configuration.manual)
        }
    }

    struct Default: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a full commented file with the defaults."
        )

        mutating func run() {
            Output.write(Configuration.defaultText)
        }
    }
}
