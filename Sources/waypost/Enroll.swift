// `waypost enroll`: enrols this device at its server.
import ArgumentParser
import Configuration
import Daemon
import Field
import Host
import Setup

struct Enroll: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Enrol this device at its server.",
        discussion: """
            Checks address, TLS and token at the server, or exchanges a code for a token; stores the token \
            so that only the service can read it, and writes upload.endpoint and upload.token_file into the \
            configuration. A running gateway applies the change.

            Exit status: 0 done, 2 failed, 78 the configuration is wrong.
            """
    )

    @Option(
        help: ArgumentHelp(
            "The server: https://HOST, or where to upload to.",
            discussion: "Without a path it gets /api/ingest, if a Waypost server answers there.",
            valueName: "url"
        )
    )
    var endpoint: String
    @Option(help: "A file that holds the device token.") var tokenFile: String?
    @Option(help: "A code that enrols one device, once.") var code: String?
    @Option(
        help: "The certificate of a private authority, in PEM; the device gets a copy of the file."
    )
    var caFile: String?
    @Flag(help: "Permit http:// to another machine: anyone on the way can read token and data.")
    var allowPlaintext = false
    @OptionGroup var options: ConfigurationOptions

    mutating func validate() throws {
        guard (tokenFile == nil) != (code == nil) else {
            throw ValidationError("give one of --token-file FILE and --code CODE")
        }
    }

    mutating func run() throws {
        let onboarding = Onboarding(
            configuration: options.config,
            environment: Environment.all,
            version: currentVersion
        )
        let proof: Onboarding.Proof = code.map { .code($0) } ?? .tokenFile(tokenFile ?? "")
        do {
            let server = ServerChoice(
                endpoint,
                caFile: caFile,
                allowsPlaintext: allowPlaintext
            )
            let lines = try onboarding.enrol(at: server, with: proof)
            for line in lines { Output.write("\(line)\n") }
        } catch let errors as ConfigurationErrors {
            Output.error("\(errors)")
            if "\(errors)".contains(text: "http:// would show") {
                Output.error("enroll: https://, or --allow-plaintext on a network that you trust")
            }
            throw ExitCode(78)
        } catch {
            Output.error("enroll: \(error)")
            throw ExitCode(2)
        }
    }
}
