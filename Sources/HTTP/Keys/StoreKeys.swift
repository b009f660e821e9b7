// Reads the keys of an object store from a file that only its owner can read.
package import Host

/// Reads the keys of an S3-compatible store; no error quotes any of their text.
package enum StoreKeys {
    /// The credential's name in a systemd unit (`LoadCredential=waypost.s3:…`).
    package static let credential = "waypost.s3"

    private static let limit = 4096

    /// Returns the keys as `ID:SECRET`, from a file, else from the systemd credential.
    ///
    /// `bucket` is its URL. `onlyBound`: a card or a stick named that URL. `key` is the setting
    /// that names the file. Throws a `Failure` with the file, the problem and the remedy.
    package static func read(
        file: String?,
        environment: [String: String],
        for bucket: String?,
        onlyBound: Bool = false,
        key: String = SettingNames().keys
    ) throws(Failure) -> String {
        let secret = SecretFile(
            name: "credentials file",
            secret: "keys for the bucket",
            key: key,
            credential: credential,
            limit: limit,
            advice: "put ID:SECRET there with mode 0600"
        )
        let (bytes, path) = try secret.read(file, environment, for: bucket, onlyBound: onlyBound)
        guard bytes.count <= limit else {
            throw Failure(
                "credentials file \(path): is larger than \(limit) bytes, so it holds no keys"
            )
        }
        switch keys(in: String(decoding: bytes, as: UTF8.self)) {
        case .success(let keys): return keys
        case .failure(let problem): throw Failure("credentials file \(path): \(problem.message)")
        }
    }

    /// Returns why a text does not hold keys; nil if it does.
    package static func problem(in text: String) -> String? {
        if case .failure(let problem) = keys(in: text) { problem.message } else { nil }
    }

    private static func keys(in text: String) -> Result<String, MismatchError> {
        let lines = text.split(whereSeparator: \.isNewline).map { trimmed($0) }
            .filter { !$0.isEmpty && !$0.hasPrefix("#") && !$0.hasPrefix(";") }
        guard let first = lines.first else { return .failure(MismatchError("is empty")) }
        guard lines.count == 1, !first.hasPrefix("["), !first.hasPrefix("aws_") else {
            return profile(in: lines)
        }
        let parts = first.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            return .failure(
                MismatchError("holds neither ID:SECRET on one line nor an AWS profile")
            )
        }
        return checked(id: String(parts[0]), secret: String(parts[1]))
    }

    /// Returns the keys of `[default]` in an AWS credentials file, or of its only profile.
    private static func profile(in lines: [String]) -> Result<String, MismatchError> {
        var profiles: [String: [String: String]] = [:]
        var name = "default"
        for line in lines {
            if line.hasPrefix("[") {
                name = trimmed(line.dropFirst().prefix { $0 != "]" })
                continue
            }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                return .failure(MismatchError("holds a line that is not key = value"))
            }
            profiles[name, default: [:]][trimmed(parts[0])] = trimmed(parts[1])
        }
        guard
            let values = profiles["default"] ?? (profiles.count == 1 ? profiles.first?.value : nil)
        else {
            return .failure(MismatchError("holds several profiles and none of them is [default]"))
        }
        guard let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"]
        else { return .failure(MismatchError("lacks aws_access_key_id or aws_secret_access_key")) }
        guard values["aws_session_token"] == nil else {
            return .failure(
                MismatchError(
                    "holds keys for one session (aws_session_token); a device needs lasting ones"
                )
            )
        }
        return checked(id: id, secret: secret)
    }

    private static func checked(id: String, secret: String) -> Result<String, MismatchError> {
        let bytes = Array(id.utf8) + Array(secret.utf8)
        guard !id.isEmpty, !secret.isEmpty else {
            return .failure(MismatchError("holds an empty id or secret"))
        }
        guard bytes.allSatisfy({ $0 > 32 && $0 < 127 }), !id.contains(":"), !id.contains("/") else {
            return .failure(
                MismatchError(
                    "holds a blank, a control character or one beyond ASCII in a key, or : or / in its id"
                )
            )
        }
        return .success("\(id):\(secret)")
    }
}
