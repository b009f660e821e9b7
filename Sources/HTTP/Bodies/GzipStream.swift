// Compresses request bodies with gzip, through zlib.
import CZlib

/// A gzip stream (RFC 1952) without a time in its header: the same input gives the same bytes.
package final class GzipStream: BodyCompressor {
    private let stream: UnsafeMutablePointer<z_stream>
    private let block = CompressedBlock()

    /// Starts one body.
    ///
    /// `isAudio`: base64 of encoded audio, in which only silence repeats. Only runs are then
    /// searched for; Huffman coding alone undoes the growth by base64 (RFC 1951, section 3.2.2).
    package init(isAudio: Bool = false) throws {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 31 = 15 + 16: the largest window, in a gzip wrapper (zlib.h, deflateInit2).
        let code = waypost_deflate_start(stream, 6, 31, isAudio ? Z_RLE : Z_DEFAULT_STRATEGY)
        guard code == Z_OK else { throw Self.error(code) }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    package func append(_ bytes: [UInt8], to output: inout [UInt8]) throws {
        try run(bytes, Z_NO_FLUSH, &output)
    }

    package func finish(to output: inout [UInt8]) throws { try run([], Z_FINISH, &output) }

    private func run(_ bytes: [UInt8], _ flush: Int32, _ output: inout [UInt8]) throws {
        try bytes.withUnsafeBufferPointer { input in
            // zlib does not write to its input, although its header does not declare it const.
            stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
            stream.pointee.avail_in = UInt32(input.count)
            repeat {
                stream.pointee.next_out = block.start
                stream.pointee.avail_out = UInt32(CompressedBlock.size)
                let code = deflate(stream, flush)
                guard code != Z_STREAM_ERROR else { throw Self.error(code) }
                block.move(CompressedBlock.size - Int(stream.pointee.avail_out), to: &output)
            } while stream.pointee.avail_out == 0
        }
    }

    private static func error(_ code: Int32) -> CompressionError {
        CompressionError(message: "zlib: \(String(cString: zError(code))) (\(code))")
    }
}
