// The encodings of request bodies, and the compression of one body.

/// How bodies are compressed on the wire.
package enum Compression: String, Sendable, CaseIterable {
    case gzip
    case zstd
    case none

    /// The value of `Content-Encoding`; nil without compression.
    package var contentEncoding: String? { self == .none ? nil : rawValue }

    /// Returns a compressor for one pass over a body; nil without compression.
    func compressor(_ content: BodyContent) throws -> (any BodyCompressor)? {
        switch self {
        case .gzip: try GzipStream(content)
        case .zstd: try ZstdStream()
        case .none: nil
        }
    }
}

/// The content of a body.
package enum BodyContent: Sendable {
    case rows
    case columns
    /// In base64.
    case audio
}

/// Compresses a body's pieces, or returns them unchanged.
package struct PieceCompressor {
    package let compression: Compression
    private let content: BodyContent
    private var compressor: (any BodyCompressor)?

    package init(_ compression: Compression, _ content: BodyContent = .rows) {
        self.compression = compression
        self.content = content
    }

    /// Compresses a piece and returns the output, which may be empty; `isLast` ends the stream.
    package mutating func receive(_ piece: [UInt8], isLast: Bool = false) throws -> [UInt8] {
        compressor = try compressor ?? compression.compressor(content)
        guard let compressor else { return piece }
        var output: [UInt8] = []
        try compressor.append(piece, to: &output)
        if isLast { try compressor.finish(to: &output) }
        return output
    }
}
