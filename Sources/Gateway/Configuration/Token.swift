// The device token: read from a file that only its owner can read, and shown to nobody.
package import Board
internal import CLinux
internal import Glibc
internal import Host

/// Reads the device token; its text never stands in an error.
package enum Token {
    /// The credential's name in a systemd unit (`LoadCredential=waypost.token:…`).
    package static let credential = "waypost.token"

    private static let limit = 4096

    /// The token from `upload.token_file`, else from the systemd credential.
    ///
    /// Throws a `Failure` that names the file, what is wrong and what to do.
    package static func read(
        file: String?,
        environment: [String: String]
    ) throws(Failure) -> String {
        let credentials = environment["CREDENTIALS_DIRECTORY"] ?? ""
        let path: String
        if let file {
            path = file
        } else if !credentials.isEmpty {
            path = "\(credentials)/\(credential)"
        } else {
            throw Failure(
                "no device token: set upload.token_file, or give the unit the credential \(credential)"
            )
        }
        // systemd keeps credentials from other users by the folder, and may let the group read them.
        let isCredential = !credentials.isEmpty && path.hasPrefix("\(credentials)/")
        return try token(in: contents(of: path, isCredential: isCredential), path)
    }

    private static func contents(
        of path: String,
        isCredential: Bool
    ) throws(Failure) -> [UInt8] {
        let file: SmallFile
        do {
            file = try SmallFile.read(path, limit: limit)
        } catch {
            throw Failure("token file \(path): \(error.reason); \(advice(error.code))")
        }
        guard file.isRegular else { throw Failure("token file \(path): is no regular file") }
        guard isCredential || file.mode & 0o077 == 0 else {
            throw Failure("token file \(path): others than its owner may use it; chmod 600 \(path)")
        }
        return file.bytes
    }

    private static func advice(_ code: Int32) -> String {
        switch code {
        case ENOENT: "put the token there with mode 0600, or run `waypost enroll`"
        case EACCES: "it must belong to the user that Waypost runs as"
        default: "check upload.token_file"
        }
    }

    private static func token(in bytes: [UInt8], _ path: String) throws(Failure) -> String {
        guard bytes.count <= limit else {
            throw Failure("token file \(path): is larger than \(limit) bytes, so it holds no token")
        }
        let blanks = " \t\r\n".utf8
        var end = bytes.count
        while end > 0, blanks.contains(bytes[end - 1]) { end -= 1 }
        let token = bytes.prefix(end)
        guard !token.isEmpty else { throw Failure("token file \(path): is empty") }
        // It goes into an HTTP header field as it is (RFC 9110, section 5.5).
        guard token.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            throw Failure(
                "token file \(path): holds a blank, a control character or one beyond ASCII; "
                    + "it must hold the token alone"
            )
        }
        return String(decoding: token, as: UTF8.self)
    }
}
