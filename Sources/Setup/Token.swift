// Reads the device token from a file that only its owner can read, and never shows it.
package import Host
package import HTTP
package import Upload

/// Reads the device token, which no error message contains.
package enum Token {
    /// The credential's name in a systemd unit (`LoadCredential=waypost.token:…`).
    package static let credential = "waypost.token"

    private static let limit = 4096

    package static let file = SecretFile(
        name: "token file",
        secret: "device token",
        key: "upload.token_file",
        credential: credential,
        limit: limit,
        advice: "put the token there with mode 0600"
    )

    /// Reads the token from `upload.token_file`, else from the systemd credential.
    ///
    /// `endpoint`: where the token will be sent; `onlyBound`: a card or a stick named that
    /// endpoint. Throws a `Failure` that names the file, the problem and the remedy.
    package static func read(
        file: String?,
        environment: [String: String],
        for endpoint: String?,
        onlyBound: Bool = false
    ) throws(Failure) -> String {
        let (bytes, path) = try Self.file.read(
            file,
            environment,
            for: endpoint,
            onlyBound: onlyBound
        )
        return try token(in: bytes, "token file \(path)")
    }

    /// Reads the token from a file that a person names, without checking its permissions.
    ///
    /// `endpoint`: where the token will be sent; throws for one stored for another server.
    package static func read(source path: String, for endpoint: String?) throws(Failure) -> String {
        let bytes: [UInt8]
        do {
            bytes = try SmallFile.read(path, limit: limit + BoundSecret.room, wait: true).bytes
        } catch {
            throw Failure("token file \(path): \(error.reason)")
        }
        let secret: [UInt8]
        do throws(Failure) {
            secret = try BoundSecret(bytes).secret(for: endpoint, onlyBound: false)
        } catch {
            throw Failure("token file \(path): \(error.message)")
        }
        return try token(in: secret, "token file \(path)")
    }

    /// Returns the token in `bytes`; `name` is their source in messages.
    package static func token(in bytes: [UInt8], _ name: String) throws(Failure) -> String {
        guard bytes.count <= limit else {
            throw Failure("\(name): is larger than \(limit) bytes, so it holds no token")
        }
        let blanks = " \t\r\n".utf8
        var end = bytes.count
        while end > 0, blanks.contains(bytes[end - 1]) { end -= 1 }
        let token = bytes.prefix(end)
        guard !token.isEmpty else { throw Failure("\(name): is empty") }
        // It is sent unchanged in an HTTP header field (RFC 9110, section 5.5).
        guard token.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            throw Failure(
                "\(name): holds a blank, a control character or one beyond ASCII; "
                    + "it must hold the token alone"
            )
        }
        return String(decoding: token, as: UTF8.self)
    }
}

extension UploadSettings {
    /// Reads what the destination asks for: the device token, or a bucket's keys as `ID:SECRET`.
    ///
    /// Throws a Failure with the file, the problem and the remedy.
    package func secret(_ environment: [String: String]) throws(Failure) -> String {
        switch destination {
        case .ingest:
            try Token.read(
                file: tokenFile,
                environment: environment,
                for: endpoint,
                onlyBound: isFromCard
            )
        case .s3:
            try StoreKeys.read(
                file: credentialsFile,
                environment: environment,
                for: bucketURL,
                onlyBound: isFromCard
            )
        }
    }
}
