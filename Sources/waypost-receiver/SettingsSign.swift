// `waypost-receiver settings sign`: signs a version of settings, on a machine that is not the server.
import ArgumentParser
import Glibc
import Host
import Minisign
import ServerArchive

struct SettingsSign: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Sign a version of a device's settings, and print the signature.",
        discussion: """
            Needs neither a server nor its data: run it where the secret key of minisign(1) is. A device whose \
            configuration has its public key as remote.key takes no settings without such a signature.

              waypost-receiver settings sign hut-1 hut-1.toml --version 7 --key minisign.key >hut-1.minisig
              sudo waypost-receiver settings set hut-1 hut-1.toml --version 7 --signature hut-1.minisig
            """
    )

    @Argument(help: "The device's id.") var device: String
    @Argument(help: "The settings, TOML of at most 32 kB; - is standard input, /dev/null clears.")
    var file: String
    @Option(help: ArgumentHelp("The version, higher than each before.", valueName: "n"))
    var version: Int64
    @Option(help: ArgumentHelp("The secret key of minisign(1).", valueName: "file"))
    var key: String

    func run() throws {
        do {
            let text = try SettingsOptions.read(file, limit: DeviceJobs.maxSettings)
            let message = DeviceSettings.signedBytes(device, version, text)
            let comment = "waypost-settings \(device) \(version)"
            let signature = try secretKey().sign(message, trustedComment: comment)
            print(signature.text, terminator: "")
        } catch {
            report("settings sign: \(error)")
            throw ExitCode(2)
        }
    }

    /// Reads the key, and asks for its password if it has one.
    private func secretKey() throws -> MinisignSecretKey {
        let file = try SmallFile.read(key, limit: MinisignSignature.maxBytes, wait: true)
        let text = String(decoding: file.bytes, as: UTF8.self)
        if let key = try? MinisignSecretKey(text) { return key }
        guard let typed = getpass("Password of \(key): ") else {
            return try MinisignSecretKey(text)
        }
        return try MinisignSecretKey(text, password: Array(String(cString: typed).utf8))
    }
}
