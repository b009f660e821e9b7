// Compresses request bodies with gzip, through zlib.
import Host
import CZlib

/// A gzip stream (RFC 1952) without a time in its header: the same input gives the same bytes.
package final class GzipStream: BodyCompressor {
    private let stream: UnsafeMutablePointer<z_stream>
    private let block = CompressedBlock()

    /// Starts one body.
    ///
    /// In audio only silence repeats. Only runs are then searched for; Huffman coding alone undoes
    /// the growth by base64 (RFC 1951, section 3.2.2). In columns short matches cost more than the
    /// digits themselves.
    package init(_ content: BodyContent = .rows) throws {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 31 = 15 + 16: the largest window, in a gzip wrapper (zlib.h, deflateInit2).
        let code = waypost_deflate_start(stream, 6, 31, Self.strategy(content))
        guard code == Z_OK else { throw Self.error(code) }
    }

    private static func strategy(_ content: BodyContent) -> Int32 {
        switch content {
        case .rows: Z_DEFAULT_STRATEGY
        case .columns: Z_FILTERED
        case .audio: Z_RLE
        }
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
            mustHold(stream.pointee.avail_in == 0, "all of a piece is compressed")
        }
    }

    private static func error(_ code: Int32) -> CompressionError {
        CompressionError(message: "zlib: \(String(cString: zError(code))) (\(code))")
    }
}
