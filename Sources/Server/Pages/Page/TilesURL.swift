// The address of a server of map tiles.
import Host

/// A template such as `https://tile.openstreetmap.org/{z}/{x}/{y}.png`.
///
/// Its origin goes into a header of the pages, so it can be nothing but a host and a port.
package struct TilesURL: Sendable {
    package static let expected =
        "http://… or https://… with a host name, and {z}, {x} and {y} once each in the path"

    package let text: String
    /// Scheme, host and port, as in a content security policy.
    let origin: String

    /// Nil for any other text.
    package init?(_ text: String) {
        guard text.utf8.count <= 500,
            let scheme = ["https://", "http://"].first(where: { text.hasPrefix($0) })
        else { return nil }
        let rest = text.dropFirst(scheme.utf8.count)
        guard let slash = rest.firstIndex(of: "/") else { return nil }
        let (host, path) = (rest[..<slash], rest[slash...])
        guard Self.isHost(host), Self.isPath(path) else { return nil }
        (self.text, origin) = (text, scheme + host)
    }

    /// A host name or an IPv4 address, with a port or without.
    private static func isHost(_ text: Substring) -> Bool {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let name = parts.first, !name.isEmpty, parts.count <= 2,
            parts.dropFirst().allSatisfy({ $0.utf8.count <= 5 && (UInt16($0) ?? 0) > 0 })
        else { return false }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        return labels.allSatisfy { label in
            !label.isEmpty && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { $0.isDigit || $0.isLetter || $0 == 45 }
        }
    }

    /// Characters of RFC 3986, section 3.3 and 3.4, and each placeholder once.
    private static func isPath(_ text: Substring) -> Bool {
        var plain = String(text)
        for name in ["{z}", "{x}", "{y}"] {
            let parts = plain.split(separator: name, omittingEmptySubsequences: false)
            guard parts.count == 2 else { return false }
            plain = parts.joined(separator: "0")
        }
        let marks = Array("/-._~!$&()*+,;=:@%?".utf8)
        return plain.utf8.allSatisfy { $0.isDigit || $0.isLetter || marks.contains($0) }
    }
}
