// The encodings of request bodies, and the compression of one body.

/// How bodies are compressed on the wire.
package enum Compression: String, Sendable, CaseIterable {
    case gzip
    case zstd
    case none

    /// The value of `Content-Encoding`; nil without compression.
    package var contentEncoding: String? { self == .none ? nil : rawValue }

    /// Returns a compressor for one pass over a body; nil without compression.
    func compressor(isAudio: Bool) throws -> (any BodyCompressor)? {
        switch self {
        case .gzip: try GzipStream(isAudio: isAudio)
        case .zstd: try ZstdStream()
        case .none: nil
        }
    }
}

/// Compresses a body's pieces, or returns them unchanged.
package struct PieceCompressor {
    package let compression: Compression
    private let isAudio: Bool
    private var compressor: (any BodyCompressor)?

    /// `isAudio`: the body is mostly audio in base64.
    package init(_ compression: Compression, isAudio: Bool = false) {
        self.compression = compression
        self.isAudio = isAudio
    }

    /// Compresses a piece and returns the output, which may be empty; `isLast` ends the stream.
    package mutating func receive(_ piece: [UInt8], isLast: Bool = false) throws -> [UInt8] {
        compressor = try compressor ?? compression.compressor(isAudio: isAudio)
        guard let compressor else { return piece }
        var output: [UInt8] = []
        try compressor.append(piece, to: &output)
        if isLast { try compressor.finish(to: &output) }
        return output
    }
}
