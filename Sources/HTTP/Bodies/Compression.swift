// Compression of request bodies: the encodings there are, and one pass over a body.

/// How bodies are compressed on the wire.
package enum Compression: String, Sendable, CaseIterable {
    case gzip
    case zstd
    case none

    /// The value of `Content-Encoding`; nil where there is none.
    package var contentEncoding: String? { self == .none ? nil : rawValue }

    /// A compressor for one pass over a body; nil where bytes go out as they are.
    func compressor(isSound: Bool) throws -> (any BodyCompressor)? {
        switch self {
        case .gzip: try GzipStream(isSound: isSound)
        case .zstd: try ZstdStream()
        case .none: nil
        }
    }
}

/// Compresses a body's pieces, or passes them on as they are.
package struct PieceCompressor {
    package let compression: Compression
    private let isSound: Bool
    private var compressor: (any BodyCompressor)?

    /// `isSound`: most of it is sound in base64.
    package init(_ compression: Compression, isSound: Bool = false) {
        self.compression = compression
        self.isSound = isSound
    }

    /// What comes out for a piece, which may be nothing; with the last piece, all that is left.
    package mutating func take(_ piece: [UInt8], isLast: Bool = false) throws -> [UInt8] {
        compressor = try compressor ?? compression.compressor(isSound: isSound)
        guard let compressor else { return piece }
        var output: [UInt8] = []
        try compressor.append(piece, to: &output)
        if isLast { try compressor.finish(to: &output) }
        return output
    }
}
