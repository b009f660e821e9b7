// Compression of request bodies: the encodings there are, and one pass over a body.

/// How bodies are compressed on the wire.
package enum Compression: String, Sendable, CaseIterable {
    case gzip
    case zstd
    case none

    /// The value of `Content-Encoding`; nil where there is none.
    package var contentEncoding: String? { self == .none ? nil : rawValue }

    /// A compressor for one pass over a body; nil where bytes go out as they are.
    func compressor() throws -> (any BodyCompressor)? {
        switch self {
        case .gzip: try GzipStream()
        case .zstd: try ZstdStream()
        case .none: nil
        }
    }
}

/// Compresses one body, piece by piece, in memory that does not grow with it.
protocol BodyCompressor: AnyObject {
    /// Compresses more of the input and appends what comes out, which may be nothing.
    func append(_ bytes: [UInt8], to output: inout [UInt8]) throws
    /// Appends what is left and the end of the stream.
    func finish(to output: inout [UInt8]) throws
}

/// Compresses a body's pieces, or passes them on as they are.
struct PieceCompressor {
    let compression: Compression
    private var compressor: (any BodyCompressor)?

    init(_ compression: Compression) {
        self.compression = compression
    }

    /// What comes out for a piece, which may be nothing; with the last piece, all that is left.
    mutating func take(_ piece: [UInt8], isLast: Bool = false) throws -> [UInt8] {
        compressor = try compressor ?? compression.compressor()
        guard let compressor else { return piece }
        var output: [UInt8] = []
        try compressor.append(piece, to: &output)
        if isLast { try compressor.finish(to: &output) }
        return output
    }
}

/// A compressor refused, in its own words.
struct CompressionError: Error, CustomStringConvertible {
    var message: String

    var description: String { message }
}

/// Where a C compressor writes to.
final class CompressedBlock {
    static let size = 16 << 10

    let start = UnsafeMutablePointer<UInt8>.allocate(capacity: CompressedBlock.size)

    deinit {
        start.deallocate()
    }

    /// Appends the first `count` bytes, which the compressor has written.
    func move(_ count: Int, to output: inout [UInt8]) {
        output.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
    }
}
