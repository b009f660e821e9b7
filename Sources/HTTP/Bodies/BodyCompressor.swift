// The protocol of body compressors, with their error and output block.

/// Compresses one body piece by piece, in constant memory.
protocol BodyCompressor: AnyObject {
    /// Compresses more input and appends the output, which may be empty.
    func append(_ bytes: [UInt8], to output: inout [UInt8]) throws
    /// Appends the remaining output and the end of the stream.
    func finish(to output: inout [UInt8]) throws
}

/// A compressor failed, with its own message.
struct CompressionError: Error, CustomStringConvertible {
    var message: String

    var description: String { message }
}

/// The output block of a C compressor.
final class CompressedBlock {
    static let size = 16 << 10

    let start = UnsafeMutablePointer<UInt8>.allocate(capacity: CompressedBlock.size)

    deinit {
        start.deallocate()
    }

    /// Appends the first `count` bytes, written by the compressor, to `output`.
    func move(_ count: Int, to output: inout [UInt8]) {
        output.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
    }
}
