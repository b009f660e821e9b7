// Compression of request bodies.
internal import CZlib

/// A stream of gzip (RFC 1952) with no time in its header, so that the same input gives the same bytes.
struct GzipStream: ~Copyable {
    private let stream: UnsafeMutablePointer<z_stream>
    private var output = [UInt8](repeating: 0, count: 16 << 10)

    init() throws {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 15 + 16: the largest window, in a gzip wrapper (zlib.h, deflateInit2).
        let code = waypost_deflate_start(stream, 6, 31)
        guard code == Z_OK else {
            throw GzipError(code: code, message: String(cString: zError(code)))
        }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Compresses more of the input; `sink` gets what comes out.
    mutating func append(_ bytes: [UInt8], _ sink: (ArraySlice<UInt8>) throws -> Void) throws {
        try run(bytes, Z_NO_FLUSH, sink)
    }

    mutating func finish(_ sink: (ArraySlice<UInt8>) throws -> Void) throws {
        try run([], Z_FINISH, sink)
    }

    private mutating func run(
        _ bytes: [UInt8],
        _ flush: Int32,
        _ sink: (ArraySlice<UInt8>) throws -> Void
    ) throws {
        var input = bytes
        try input.withUnsafeMutableBufferPointer { input in
            stream.pointee.next_in = input.baseAddress
            stream.pointee.avail_in = UInt32(input.count)
            repeat {
                let (code, filled) = output.withUnsafeMutableBufferPointer { output in
                    stream.pointee.next_out = output.baseAddress
                    stream.pointee.avail_out = UInt32(output.count)
                    let code = deflate(stream, flush)
                    return (code, output.count - Int(stream.pointee.avail_out))
                }
                guard code != Z_STREAM_ERROR else {
                    throw GzipError(code: code, message: String(cString: zError(code)))
                }
                if filled > 0 { try sink(output[0..<filled]) }
            } while stream.pointee.avail_out == 0
        }
    }
}

/// zlib refused, with its own words.
struct GzipError: Error, CustomStringConvertible {
    var code: Int32
    var message: String

    var description: String { "zlib: \(message) (\(code))" }
}
