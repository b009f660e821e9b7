// What the device has for its server, where a configuration names another one.
import Configuration
import Host
import HTTP
import Upload

/// A secret that a new configuration cannot use.
struct StoredSecret {
    let file: CardFile
    /// Scheme, host and port of the server that it was given for; nil where it does not say so.
    let server: String?
    /// Those of the one that it is not for.
    let other: String

    /// nil where the device has none, or all that it has is for the server of `configuration`.
    static func forAnother(
        than configuration: Configuration,
        _ places: ImportPlaces
    ) -> StoredSecret? {
        let upload = configuration.upload
        let isBucket = upload.destination == .s3
        guard let other = upload.server else { return nil }
        let files: [CardFile] = isBucket ? [.keys] : [.token, .code]
        return files.lazy.compactMap { file in
            guard let path = places.secret(file), let text = SmallText.read(path) else {
                return nil
            }
            let server = BoundSecret(Array(text.utf8)).server
            return server == other ? nil : StoredSecret(file: file, server: server, other: other)
        }.first
    }

    /// `name`: of the configuration on the card.
    func problem(_ name: String) -> CardProblem {
        let files = file == .keys ? "waypost.s3" : "waypost.token or waypost.code"
        let (verb, negation) = file == .keys ? ("are", "do") : ("is", "does")
        let whose =
            server.map { "\(verb) for \($0), and goes to no other server" }
            ?? "\(negation) not say which server that is for, and is sent to none that a card or a stick names"
        return CardProblem(
            file: name,
            "it names \(other), but the \(file.noun) of the device \(whose)",
            "write \(files) beside it, as \(other) gave it"
        )
    }
}

extension ImportPlaces {
    /// The configuration that counts now; the defaults where it is wrong or not there.
    var inForce: Configuration {
        let path = Configuration.inForce(configuration)
        return (try? Configuration.load(path: path, environment: [:]).values) ?? Configuration()
    }
}
