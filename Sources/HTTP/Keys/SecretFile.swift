// Files with secrets: only their owner may use them, or systemd has put them there.
import CLinux
import Glibc
package import Host

/// One kind of file with a secret, and how its errors speak of it.
package struct SecretFile: Sendable {
    /// As messages begin: `token file`.
    var name: String
    /// What it holds: `device token`.
    var secret: String
    /// The key that names the file.
    var key: String
    /// The credential of a systemd unit that stands in for it.
    var credential: String
    /// The most bytes it may hold.
    var limit: Int
    /// What to do when it is missing.
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

    /// The bytes of the configured file, else of the credential; more than the limit where there are more.
    ///
    /// `target`: the URL that they will be sent to; `onlyBound`: a card or a stick named it. Throws a `Failure` that names the file, what is wrong and what to do.
    package func read(
        _ file: String?,
        _ environment: [String: String],
        for target: String?,
        onlyBound: Bool
    ) throws(Failure) -> (bytes: [UInt8], path: String) {
        let credentials = environment["CREDENTIALS_DIRECTORY"] ?? ""
        let path = file ?? "\(credentials)/\(credential)"
        // The unit asks for a credential that need not be there.
        let isMissing = credentials.isEmpty || (access(path, F_OK) != 0 && errno == ENOENT)
        guard file != nil || !isMissing else {
            throw Failure("no \(secret): set \(key), or give the unit the credential \(credential)")
        }
        // systemd keeps credentials from other users by the folder, and may let the group read them.
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
