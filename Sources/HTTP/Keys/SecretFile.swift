// Files with secrets, which only their owner may use unless systemd provides them.
import CLinux
import Glibc
package import Host

/// One kind of secret file, with the words for its errors.
package struct SecretFile: Sendable {
    /// The start of its messages: `token file`.
    var name: String
    /// The content, for messages: `device token`.
    var secret: String
    /// The configuration key that names the file.
    var key: String
    /// The systemd credential that may replace it.
    var credential: String
    /// The largest size in bytes.
    var limit: Int
    /// The remedy if it is missing.
    var advice: String

    package init(
        name: String,
        secret: String,
        key: String,
        credential: String,
        limit: Int,
        advice: String
    ) {
        self.name = name
        self.secret = secret
        self.key = key
        self.credential = credential
        self.limit = limit
        self.advice = advice
    }

    /// Returns the bytes of the configured file, else of the credential; not cut at `limit`.
    ///
    /// `target` is the URL that they will be sent to. `onlyBound`: a card or a stick named that
    /// URL. Throws a `Failure` with the file, the problem and the remedy.
    package func read(
        _ file: String?,
        _ environment: [String: String],
        for target: String?,
        onlyBound: Bool
    ) throws(Failure) -> (bytes: [UInt8], path: String) {
        let credentials = environment["CREDENTIALS_DIRECTORY"] ?? ""
        let path = file ?? "\(credentials)/\(credential)"
        // The unit loads a credential that may be absent.
        let isMissing = credentials.isEmpty || (access(path, F_OK) != 0 && errno == ENOENT)
        guard file != nil || !isMissing else {
            throw Failure("no \(secret): set \(key), or give the unit the credential \(credential)")
        }
        // systemd protects credentials by their folder and may let the group read them.
        let isCredential = !credentials.isEmpty && path.hasPrefix("\(credentials)/")
        let found = BoundSecret(try contents(of: path, isCredential: isCredential))
        do throws(Failure) {
            return (try found.secret(for: target, onlyBound: onlyBound), path)
        } catch {
            throw Failure("\(name) \(path): \(error.message)")
        }
    }

    private func contents(of path: String, isCredential: Bool) throws(Failure) -> [UInt8] {
        let file: SmallFile
        do {
            file = try SmallFile.read(path, limit: limit + BoundSecret.room)
        } catch {
            throw Failure("\(name) \(path): \(error.reason); \(advice(error.code))")
        }
        guard file.isRegular else { throw Failure("\(name) \(path): is not a regular file") }
        guard isCredential || file.mode & 0o077 == 0 else {
            throw Failure("\(name) \(path): is accessible to other users; run: chmod 600 \(path)")
        }
        return file.bytes
    }

    private func advice(_ code: Int32) -> String {
        switch code {
        case ENOENT: advice
        case EACCES: "it must belong to the user that Waypost runs as"
        default: "check \(key)"
        }
    }
}
