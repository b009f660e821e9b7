// A secret as the device keeps it: with the server that it was given for, so that no other one is ever sent it.
package import Board

/// The content of a secret's file, and the line in it that says whom it is for.
package struct BoundSecret: Equatable {
    package var secret: [UInt8]
    /// Scheme, host and port; nil in a file of a person, who set it beside the endpoint.
    package var server: String?

    private static let mark = Array("# for ".utf8)

    /// That line is the last one.
    package init(_ bytes: [UInt8]) {
        let end = (bytes.lastIndex { $0 > 32 }).map { $0 + 1 } ?? 0
        let start = bytes[..<end].lastIndex(of: 10).map { $0 + 1 } ?? 0
        guard bytes[start..<end].starts(with: Self.mark) else {
            (secret, server) = (bytes, nil)
            return
        }
        secret = Array(bytes[..<start])
        server = String(decoding: bytes[start..<end].dropFirst(Self.mark.count), as: UTF8.self)
    }

    /// The text of the file of a secret for `server`.
    package static func text(_ secret: String, for server: String?) -> String {
        secret + (server.map { "\n\(String(decoding: mark, as: UTF8.self))\($0)" } ?? "")
    }

    /// The bytes that the line takes at most: those of a URL.
    package static let room = 2100

    /// The secret, where it may be sent to the URL `target`.
    ///
    /// Throws a `Failure` that says what to do.
    package func secret(for target: String?) throws(Failure) -> [UInt8] {
        guard let server, let target, case .success(let endpoint) = Endpoint.parse(target),
            endpoint.server != server
        else { return secret }
        throw Failure(
            "is for \(server) and is not sent to \(endpoint.server); "
                + "`sudo waypost enroll` with a token or a code of that server, or put one on the card"
        )
    }
}
