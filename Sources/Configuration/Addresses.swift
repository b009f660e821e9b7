// Kinds of text that several parts have: paths, names, network addresses.
internal import Glibc
internal import Host

extension ValueFormat where Value == String {
    /// An absolute path, which a message never shows: a token may have been put in its place.
    package static func path(limit: Int = 1024) -> Self {
        .text(
            "an absolute path of at most \(limit) bytes",
            isDiscreet: true,
            parse: { text in
                pathProblem(text, limit: limit).map { .failure(Mismatch($0)) } ?? .success(text)
            },
            written: { $0 }
        )
    }

    /// A name that is safe in a URL and as a folder; `first` says which bytes it may begin with.
    package static func name(
        _ what: String,
        first: (text: String, isRight: @Sendable (UInt8) -> Bool)? = nil
    ) -> Self {
        .text(
            "1 to 64 of the characters A-Z a-z 0-9 _ -" + (first.map { ", \($0.text)" } ?? ""),
            no: what,
            parse: { text in
                let bytes = text.utf8
                let isSafe = bytes.allSatisfy { $0.isLetter || $0.isDigit || $0 == 95 || $0 == 45 }
                guard isSafe, (1...64).contains(bytes.count), let start = bytes.first else {
                    return nil
                }
                return first?.isRight(start) ?? true ? text : nil
            },
            written: { $0 }
        )
    }
}

private func pathProblem(_ path: String, limit: Int) -> String? {
    let bytes = path.utf8
    if bytes.isEmpty { return "is empty" }
    if bytes.first != UInt8(ascii: "/") { return "is no absolute path: it does not begin with /" }
    if bytes.contains(where: { $0 < 32 || $0 == 127 }) { return "holds a control character" }
    return bytes.count > limit ? "is longer than \(limit) bytes" : nil
}

extension ValueFormat where Value == HostPort {
    package static let hostPort = ValueFormat.text(
        "host:port, as localhost:2947 or [::1]:2947",
        no: "host:port",
        parse: { HostPort($0[...]) },
        written: \.description
    )
}

/// A TCP address as it is written: `localhost:2947`, `[::1]:2947`.
package struct HostPort: Sendable, Equatable, CustomStringConvertible {
    /// A name or an address, without brackets.
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads `host:port`, an IPv6 address in brackets; nil for anything else.
    package init?(_ text: Substring) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy(\.isDigit), let port = UInt16(digits), port > 0,
            let host = Self.host(text[..<colon])
        else { return nil }
        self.init(host: host, port: port)
    }

    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// A host as URLs write it, without the brackets of an IPv6 address; nil if it is none.
    package static func host(_ text: Substring) -> String? {
        if text.hasPrefix("["), text.hasSuffix("]") {
            let address = String(text.dropFirst().dropLast())
            return isIPv6(address) ? address : nil
        }
        let bytes = text.utf8
        let safe = bytes.allSatisfy {
            $0.isLetter || $0.isDigit || [UInt8(ascii: "."), 45, 95].contains($0)
        }
        let ends = [bytes.first, bytes.last]
        guard (1...253).contains(bytes.count), safe, !ends.contains(45), bytes.first != 46 else {
            return nil
        }
        return String(text)
    }
}

private func isIPv6(_ text: String) -> Bool {
    var address = in6_addr()
    return !text.utf8.contains(0) && inet_pton(AF_INET6, text, &address) == 1
}
