// `waypost config remote`: the settings from the server, and the way back without it.
import ArgumentParser
import Configuration
import Glibc
import Host
import Remote
import Setup
import Status

struct RemoteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remote",
        abstract: "Print the settings from the server, or remove them.",
        discussion: """
            They lie above the device's own file, if remote.allow has "settings". A version that was removed or \
            rolled back is not taken again.

            Exit status: 0 done, 2 failed.
            """ + examples("waypost config remote", "sudo waypost config remote --clear")
    )

    @Flag(help: "Remove them: the device's own file alone counts again.")
    var clear = false
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        let configuration = try options.load().values
        let directory = configuration.stateDirectory
        if access(directory, R_OK | X_OK) != 0 {
            let why = SystemError.last("access", on: directory).reason
            throw failure(
                "config remote: \(directory) cannot be read: \(why); run it with sudo",
                status: 2
            )
        }
        do {
            if clear {
                try Self.clear(directory, isSigned: configuration.remote.key != nil)
                Output.write("removed; \(Self.reload(configuration))\n")
            } else {
                let stored = try StoredSettings.read(in: directory)
                Output.write(Self.text(stored, configuration.remote))
            }
        } catch {
            throw failure("config remote: \(error)", status: 2)
        }
    }

    /// Also replaces a damaged file.
    private static func clear(_ directory: String, isSigned: Bool) throws(SystemError) {
        var stored = (try? StoredSettings.read(in: directory)) ?? StoredSettings()
        stored.clear("removed on the device (waypost config remote --clear)", isSigned: isSigned)
        try stored.write(in: directory)
    }

    private static func reload(_ configuration: Configuration) -> String {
        do {
            _ = try ControlClient(configuration).ask(.init(.reload))
            return "the running gateway reloads its configuration"
        } catch {
            return "a gateway that runs reloads it by `sudo systemctl reload waypost`"
        }
    }

    private static func text(_ stored: StoredSettings, _ remote: RemoteSettings) -> String {
        var lines: [String] = []
        if let version = stored.current {
            let since = stored.trialSince.map { ", on trial since \($0.rfc3339)" } ?? ""
            lines.append("# version \(version.number) of the server\(since)")
            if !remote.allowsSettings {
                lines.append("# not in force: remote.allow does not have \"settings\"")
            }
        } else {
            lines.append("# no settings from the server")
        }
        if let refused = stored.refused, let outcome = stored.outcome, outcome.version == refused {
            lines.append("# version \(refused) was rolled back: \(outcome.message)")
        }
        return (lines + [stored.current?.text ?? ""]).joined(separator: "\n") + "\n"
    }
}
