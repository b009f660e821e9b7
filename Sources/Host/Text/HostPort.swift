// Network addresses as people write them.
import Glibc

/// A TCP address as people write it: `localhost:2947`, `[::1]:2947`.
package struct HostPort: Sendable, Equatable, CustomStringConvertible {
    /// A name or an address, without brackets.
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Parses `host:port`, an IPv6 address in brackets; nil for anything else.
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

    /// Parses a host as URLs write it and removes the brackets of an IPv6 address; nil if not
    /// valid.
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
