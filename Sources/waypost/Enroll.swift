// `waypost enroll`: enrols this device at its server.
import ArgumentParser
import Configuration
import Daemon
import Field
import Setup

struct Enroll: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Enrol this device at its server.",
        discussion: """
            Checks address, TLS and token at the server, or exchanges a code for a token; stores the token \
            so that only the service can read it, and writes upload.endpoint and upload.token_file into the \
            configuration. A running gateway applies the change.

            An endpoint without a path gets /api/ingest if a Waypost server answers there. With \
            --allow-plaintext, anyone on the way can read the token and the data: use it only in a \
            network that you trust.

            Exit status: 0 done, 2 failed, 78 the configuration is wrong.
            """
                + examples(
                    "sudo waypost enroll --endpoint https://HOST --code CODE",
                    "sudo waypost enroll --endpoint https://HOST --token-file FILE --ca-file CA.pem"
                )
    )

    @Option(help: .value("URL", "Where to upload to: https://HOST/api/ingest.")) var endpoint:
        String
    @Option(
        help: .value("FILE", "A PEM file with the server's own authority; it is copied."),
        completion: .file()
    )
    var caFile: String?
    @Flag(help: "Allow http:// to another machine.") var allowPlaintext = false
    @Option(help: .value("FILE", "A file that holds the device token."), completion: .file())
    var tokenFile: String?
    @Option(help: .value("CODE", "A code that enrols one device, once.")) var code: String?
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
            let server = Onboarding.Server(
                endpoint: endpoint,
                caFile: caFile,
                allowsPlaintext: allowPlaintext
            )
            let lines = try onboarding.enrol(at: server, with: proof)
            for line in lines { Output.write("\(line)\n") }
        } catch let errors as ConfigurationErrors {
            throw failure("\(errors)", status: 78)
        } catch {
            throw failure("enroll: \(error)", status: 2)
        }
    }
}
