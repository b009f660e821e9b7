// Which compression a server takes: the one configured until it answers 415.
package import HTTP

/// The compression in use; a server's refusal is remembered as long as this value lives, or until it refuses all.
package struct CompressionChoice: Sendable {
    package private(set) var current: Compression
    private let configured: Compression
    /// What the server has refused; it is not tried again while it takes anything else.
    private var refused: Set<Compression> = []

    package init(_ configured: Compression) {
        current = configured
        self.configured = configured
    }

    /// After a 415: changes to an encoding that the server names, else to none.
    ///
    /// `accepting` is the answer's `Accept-Encoding` (RFC 9110, section 12.5.3), empty without one. False
    /// when bodies were not compressed: then compression is not what the server refuses, or it has changed its mind,
    /// and the next try begins with the one configured.
    package mutating func fallBack(accepting: String) -> Bool {
        guard current != .none else {
            self = Self(configured)
            return false
        }
        refused.insert(current)
        let named = Self.named(accepting)
        // The smaller one first; `none` needs no naming.
        let next = [Compression.zstd, .gzip].first { encoding in
            !refused.contains(encoding) && encoding.contentEncoding.map(named.contains) ?? false
        }
        current = next ?? .none
        return true
    }

    /// The codings of an `Accept-Encoding` but those with a weight of nought.
    private static func named(_ field: String) -> Set<String> {
        var names: Set<String> = []
        for element in field.lowercased().split(separator: ",") {
            let parts = element.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            guard let name = parts.first else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { $0.dropFirst(2) }
            if weight.flatMap({ Double($0) }) == 0 { continue }
            names.insert(name)
        }
        // `x-gzip` is the same coding (RFC 9110, section 8.4.1.3).
        if names.contains("x-gzip") { names.insert("gzip") }
        return names
    }
}
