// What the device has for its server, where a configuration names another one.
internal import Configuration
internal import Host
internal import Requests
internal import Upload

/// A secret that a new configuration cannot use.
struct StoredSecret {
    let file: CardFile
    /// Scheme, host and port of the server that it was given for, and of the one that it is not for.
    let server, other: String

    /// nil where the device has none, or all that it has is for the server of `configuration`.
    static func forAnother(
        than configuration: Configuration,
        _ places: ImportPlaces
    ) -> StoredSecret? {
        let upload = configuration.upload
        let isBucket = upload.destination == .s3
        // The configuration names a file of its own.
        let named = isBucket ? upload.credentialsFile : upload.tokenFile
        guard named == nil, let other = upload.server else { return nil }
        let files: [CardFile] = isBucket ? [.keys] : [.token, .code]
        return files.lazy.compactMap { file in
            guard let server = places.server(of: file), server != other else { return nil }
            return StoredSecret(file: file, server: server, other: other)
        }.first
    }

    /// `name`: of the configuration on the card.
    func problem(_ name: String) -> CardProblem {
        let files = file == .keys ? "waypost.s3" : "waypost.token or waypost.code"
        let verb = file == .keys ? "are" : "is"
        return CardProblem(
            file: name,
            "it names \(other), but the \(file.noun) of the device \(verb) for \(server), and goes to no other server",
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

    /// Whom a secret that is stored is for; of one that does not say so, the server that it has been sent to.
    fileprivate func server(of file: CardFile) -> String? {
        guard let path = secret(file), let text = SmallText.read(path) else { return nil }
        return BoundSecret(Array(text.utf8)).server ?? inForce.upload.server
    }
}
