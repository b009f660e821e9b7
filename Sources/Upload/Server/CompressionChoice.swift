// Chooses the compression of uploads: the configured one until the server answers 415.
package import HTTP

/// The compression in use.
///
/// Remembers which encodings the server refused, as long as this value lives or until the server
/// refuses uncompressed bodies too.
package struct CompressionChoice: Sendable {
    package private(set) var current: Compression
    private let configured: Compression
    /// Encodings the server refused; not retried while it accepts anything else.
    private var refused: Set<Compression> = []

    package init(_ configured: Compression) {
        current = configured
        self.configured = configured
    }

    /// Handles a 415: changes to an encoding that the server names, else to none.
    ///
    /// `accepting` is the answer's `Accept-Encoding` (RFC 9110, section 12.5.3), empty without one.
    /// Returns false if bodies were not compressed: then the server refuses something else, or its
    /// behaviour has changed, and the next try begins with the configured compression.
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

    /// Returns the codings of an `Accept-Encoding`, without those of weight zero.
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
