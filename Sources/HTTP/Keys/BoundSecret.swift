// Secrets bound to one server, so that they are never sent to another.
package import Host

/// The content of a secret's file, and the line in it that names its server.
package struct BoundSecret: Equatable {
    package var secret: [UInt8]
    /// Scheme, host and port; nil in a file that a person wrote next to the endpoint.
    package var server: String?

    private static let mark = Array("# for ".utf8)

    /// Parses a file; the line that names the server is the last one.
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

    /// Returns the content of the file for a secret of `server`.
    package static func text(_ secret: String, for server: String?) -> String {
        secret + (server.map { "\n\(String(decoding: mark, as: UTF8.self))\($0)" } ?? "")
    }

    /// The most bytes that the line takes: those of a URL.
    package static let room = 2100

    /// Returns the secret if it may be sent to the URL `target`.
    ///
    /// `onlyBound`: a card or a stick named the URL, so the file itself must name that server.
    /// Throws a `Failure` with the remedy.
    package func secret(for target: String?, onlyBound: Bool) throws(Failure) -> [UInt8] {
        guard let target, let endpoint = Self.endpoint(target), endpoint.server != server else {
            return secret
        }
        guard let server else {
            guard onlyBound else { return secret }
            throw Failure(Self.unbound(endpoint.server))
        }
        throw Failure(
            "is for \(server) and is not sent to \(endpoint.server); "
                + "`sudo waypost enroll` with a token or a code of that server, or put one on the card"
        )
    }

    private static func endpoint(_ target: String) -> Endpoint? {
        (try? Endpoint.parse(target).get()) ?? (try? Endpoint.parse(target, .mqtt).get())
    }

    private static func unbound(_ server: String) -> String {
        "does not say which server it is for, and is not sent to \(server), which a card or a stick named; "
            + "if it is for \(server), add the line `\(String(decoding: mark, as: UTF8.self))\(server)` at its end "
            + "(of a credential: in /etc/credstore, then restart the service), or `sudo waypost enroll`"
    }
}
