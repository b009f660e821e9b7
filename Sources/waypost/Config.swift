// `waypost config`: checks and prints the configuration.
import ArgumentParser
import Configuration
import Daemon
import Field
import Host
import Setup

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check or print the configuration.",
        discussion: examples(
            "waypost config check",
            "waypost config show",
            "waypost config default >all-keys.toml",
            "sudo waypost config proxy-key",
            "waypost config remote"
        ),
        subcommands: [
            Check.self, Show.self, Default.self, ProxyKeyCommand.self, RemoteCommand.self,
            Manual.self,
        ]
    )

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check the file: every error at once, with its line.",
            discussion: """
                Also checks the files and sound devices that it names, because a missing one keeps the device \
                from collecting or uploading.

                Exit status: 0 all is well, 1 something that the configuration names is missing, 78 the \
                configuration is wrong.
                """ + examples("waypost config check", "waypost config check --config FILE")
        )

        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let configuration = try options.load().values
            let check = CollectionCheck(configuration, environment: Environment.all)
            let file = Configuration.inForce(options.config)
            for remark in check.remarks { Output.error("warning: \(remark)") }
            let problems = check.problems
            for problem in problems { Output.error("\(file): \(problem)") }
            guard problems.isEmpty else { throw ExitCode(1) }
            Output.write("\(file): ok\n")
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the effective values, and where each comes from.",
            discussion: examples("waypost config show")
        )

        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            Output.write(try options.load().shown)
        }
    }

    struct ProxyKeyCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "proxy-key",
            abstract: "Make the key of the Bluetooth proxy, or show it.",
            discussion: """
                Makes the file that proxy.key_file names, else proxy.key beside the configuration, for the \
                service alone; a file that is there stays as it is. Prints the key that Home Assistant asks for.

                Exit status: 0 done, 2 failed.
                """ + examples("sudo waypost config proxy-key")
        )

        @Flag(help: "Replace the key; each Home Assistant then asks for the new one.")
        var replace = false
        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let file = ProxyKeyFile(configuration: options.config, environment: Environment.all)
            do {
                let (key, isNew) = try file.key(replaces: replace)
                Output.write(
                    """
                    key file: \(file.path)\(isNew ? "" : " (was there already)")
                    encryption key for Home Assistant: \(key.base64)

                    waypost.toml needs these lines; then `sudo systemctl reload waypost`:
                    [proxy]
                    esphome = true
                    key_file = "\(file.path)"

                    """
                )
            } catch {
                throw failure("config proxy-key: \(error.message)", status: 2)
            }
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
            abstract: "Print a full commented file with the defaults.",
            discussion: examples("waypost config default >all-keys.toml")
        )

        mutating func run() {
            Output.write(Configuration.defaultText)
        }
    }
}
