// Parses a server's URL far enough to refuse forbidden ones (RFC 3986, section 3).
import Glibc
package import Host

/// The parts of a server's URL that the configuration rules check.
package struct Endpoint: Sendable, Equatable {
    /// The protocol, which gives the URL its scheme and its standard port.
    package enum Kind: Sendable, Equatable {
        case http
        case mqtt

        fileprivate func scheme(_ isEncrypted: Bool) -> String {
            (self == .http ? "http" : "mqtt") + (isEncrypted ? "s" : "")
        }

        fileprivate func port(_ isEncrypted: Bool) -> UInt16 {
            switch self {
            case .http: isEncrypted ? 443 : 80
            case .mqtt: isEncrypted ? 8883 : 1883
            }
        }

        fileprivate var userAdvice: String {
            switch self {
            case .http: "the token belongs in upload.token_file"
            case .mqtt: "it belongs in mqtt.username, and its password in mqtt.password_file"
            }
        }
    }

    package var isEncrypted: Bool
    /// The host, without the brackets of an IPv6 address.
    package var host: String
    package var port: UInt16
    package var kind = Kind.http

    /// Scheme, host and port in normal form; it identifies the server that sees what is sent there.
    package var server: String {
        let standard = kind.port(isEncrypted)
        let place = HostPort(host: host.lowercased(), port: port).description
        let shown = port == standard ? String(place.dropLast(":\(port)".count)) : place
        return "\(kind.scheme(isEncrypted))://\(shown)"
    }

    /// Parses an absolute URL of `kind` with a host, without a user or a fragment.
    package static func parse(_ text: String, _ kind: Kind = .http) -> Result<
        Endpoint, MismatchError
    > {
        guard text.utf8.count <= 2048, text.utf8.allSatisfy(isURLByte) else {
            return .failure(MismatchError("holds a character not allowed in a URL"))
        }
        let (encrypted, plain) = (kind.scheme(true), kind.scheme(false))
        guard let mark = text.utf8.firstIndex(of: UInt8(ascii: ":")),
            text[mark...].hasPrefix("://")
        else { return .failure(MismatchError("is not a URL with \(encrypted):// before the host")) }
        let scheme = text[..<mark].lowercased()
        guard scheme == encrypted || scheme == plain else {
            let article = kind == .http ? "an" : "a"
            return .failure(
                MismatchError(
                    "is neither \(article) \(encrypted):// nor \(article) \(plain):// URL"
                )
            )
        }
        let rest = text[mark...].dropFirst(3)
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if authority.contains("@") {
            return .failure(MismatchError("names a user: \(kind.userAdvice)"))
        }
        if rest.contains("#") { return .failure(MismatchError("ends in a #fragment")) }
        let isEncrypted = scheme == encrypted
        guard let place = place(ofAuthority: authority, port: kind.port(isEncrypted)) else {
            return .failure(MismatchError("does not name a valid host and port"))
        }
        return .success(
            Endpoint(isEncrypted: isEncrypted, host: place.host, port: place.port, kind: kind)
        )
    }

    /// The host is this machine, by address or by the name that RFC 6761 reserves for it.
    package var isLoopback: Bool {
        if host.lowercased() == "localhost" { return true }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 {
            return UInt32(bigEndian: four.s_addr) >> 24 == 127
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, host, &six) == 1 else { return false }
        return withUnsafeBytes(of: six) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }

    private static func place(ofAuthority authority: Substring, port: UInt16) -> HostPort? {
        let bracket = authority.lastIndex(of: "]") ?? authority.startIndex
        guard authority[bracket...].contains(":") else {
            return HostPort.host(authority).map { HostPort(host: $0, port: port) }
        }
        return HostPort(authority)
    }

    /// Returns true for a reserved or unreserved character or `%` (RFC 3986, section 2).
    private static func isURLByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || "-._~:/?#[]@!$&'()*+,;=%".utf8.contains(byte)
    }
}
