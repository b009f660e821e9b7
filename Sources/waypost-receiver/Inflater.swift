// Request bodies as they were before compression, up to a limit.
import CZlib
import CZstd

/// A request that cannot be accepted: its status and why.
struct Refusal: Error {
    var status: Int
    var reason: String
    /// The encodings that would have been taken, where that is what was wrong.
    var acceptEncoding: String?
    /// Seconds to wait before another try.
    var retryAfter: Int?
}

/// Undoes `Content-Encoding`.
enum Inflater {
    /// Inflated bodies may be so large: a small body can hold gigabytes of zeros.
    static let limit = 64 << 20

    static func inflate(_ body: [UInt8], encoding: String) throws -> [UInt8] {
        switch encoding.lowercased() {
        case "", "identity": return body
        case "gzip": return try gzip(body)
        case "zstd": return try zstd(body)
        default:
            throw Refusal(
                status: 415,
                reason: "Content-Encoding \(encoding): gzip and zstd are known",
                acceptEncoding: "gzip, zstd"
            )
        }
    }

    private static func gzip(_ body: [UInt8]) throws -> [UInt8] {
        var stream = z_stream()
        guard waypost_inflate_start(&stream, 31) == Z_OK else {
            throw Refusal(status: 500, reason: "zlib could not be started")
        }
        defer { inflateEnd(&stream) }
        var input = body
        var output: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 64 << 10)
        try input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            var code = Z_OK
            while code == Z_OK {
                let count = block.withUnsafeMutableBufferPointer { block -> Int in
                    stream.next_out = block.baseAddress
                    stream.avail_out = UInt32(block.count)
                    code = CZlib.inflate(&stream, Z_NO_FLUSH)
                    return block.count - Int(stream.avail_out)
                }
                output += block.prefix(count)
                guard output.count <= limit else { throw tooLarge }
            }
            guard code == Z_STREAM_END, stream.avail_in == 0 else {
                throw Refusal(status: 400, reason: "the body is not whole gzip")
            }
        }
        return output
    }

    private static func zstd(_ body: [UInt8]) throws -> [UInt8] {
        guard let stream = ZSTD_createDStream() else {
            throw Refusal(status: 500, reason: "zstd could not be started")
        }
        defer { ZSTD_freeDStream(stream) }
        var output: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 128 << 10)
        try body.withUnsafeBytes { body in
            var input = ZSTD_inBuffer(src: body.baseAddress, size: body.count, pos: 0)
            var rest = 1
            while rest != 0 {
                let before = input.pos
                let (code, count) = block.withUnsafeMutableBytes { block -> (Int, Int) in
                    var out = ZSTD_outBuffer(dst: block.baseAddress, size: block.count, pos: 0)
                    return (ZSTD_decompressStream(stream, &out, &input), out.pos)
                }
                output += block.prefix(count)
                let isStuck = input.pos == before && count == 0
                guard ZSTD_isError(code) == 0, !(isStuck && code != 0) else {
                    throw Refusal(status: 400, reason: "the body is not whole zstd")
                }
                guard output.count <= limit else { throw tooLarge }
                rest = code
            }
            guard input.pos == input.size else {
                throw Refusal(status: 400, reason: "bytes follow the end of the zstd body")
            }
        }
        return output
    }

    private static var tooLarge: Refusal {
        Refusal(status: 413, reason: "the body inflates to more than \(limit >> 20) MiB")
    }
}
