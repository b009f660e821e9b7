// Finds a stored secret that is bound to another server than the configured one.
import Configuration
import Host
import HTTP
package import Setup
import Status
import Upload

/// A stored secret that a new configuration cannot use.
struct StoredSecret {
    let file: CardFile
    /// Scheme, host and port of the server that the secret is bound to; nil if it is not bound.
    let server: String?
    /// Scheme, host and port of the newly configured server.
    let other: String

    /// Returns nil if the device has no secret, or only those for the server of `configuration`.
    static func forAnother(
        than configuration: Configuration,
        _ paths: ImportPaths
    ) -> StoredSecret? {
        let upload = configuration.upload
        let isBucket = upload.destination == .s3
        guard let other = upload.server else { return nil }
        let files: [CardFile] = isBucket ? [.keys] : [.token, .code]
        return files.firstResult { file in
            guard let path = paths.secret(file), let text = SmallText.read(path) else {
                return nil
            }
            let server = BoundSecret(Array(text.utf8)).server
            return server == other ? nil : StoredSecret(file: file, server: server, other: other)
        }
    }

    /// Returns the problem to report; `name`: the configuration file on the card.
    func problem(_ name: String) -> CardFailure {
        let files = file == .keys ? "waypost.s3" : "waypost.token or waypost.code"
        let (verb, negation) = file == .keys ? ("are", "do") : ("is", "does")
        let whose =
            server.map { "\(verb) for \($0), and goes to no other server" }
            ?? "\(negation) not say which server that is for, and is sent to none that a card or a stick names"
        return CardFailure(
            file: name,
            "it names \(other), but the \(file.noun) of the device \(whose)",
            "write \(files) beside it, as \(other) gave it"
        )
    }
}

extension ImportPaths {
    /// The configuration in force; the defaults if it is wrong or missing.
    package var inForce: Configuration {
        let path = Configuration.inForce(configuration)
        return (try? Configuration.load(path: path, environment: [:]).values) ?? Configuration()
    }
}
