// What a compressor of bodies is, and what each of them uses.

/// Compresses one body, piece by piece, in memory that does not grow with it.
protocol BodyCompressor: AnyObject {
    /// Compresses more of the input and appends what comes out, which may be nothing.
    func append(_ bytes: [UInt8], to output: inout [UInt8]) throws
    /// Appends what is left and the end of the stream.
    func finish(to output: inout [UInt8]) throws
}

/// A compressor refused, with its own message.
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
