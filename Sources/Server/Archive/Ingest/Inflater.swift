// Decompresses request bodies up to a size limit.
import CZlib
import CZstd
package import ServerBase

/// Decodes `Content-Encoding`.
package enum Inflater {
    /// The maximum inflated size in bytes; a small body can hold gigabytes of zeros.
    package static let limit = 64 << 20
    /// Bytes of an inflated body that are kept in memory.
    static let memory = 256 << 10
    /// RFC 8878, section 3.1.1.1.2: a window of 8 MiB is enough for data sent over a network.
    private static let zstdWindowLog: Int32 = 23

    /// Throws an HTTPError for an unknown encoding.
    package static func check(_ encoding: String) throws {
        guard ["", "identity", "gzip", "zstd"].contains(encoding.lowercased()) else {
            throw HTTPError(
                status: 415,
                reason: "Content-Encoding \(encoding): gzip and zstd are known",
                acceptEncoding: "gzip, zstd"
            )
        }
    }

    /// Returns the inflated body, or the body itself if it is not compressed.
    ///
    /// `limit`: the processor time that it may use.
    package static func inflate(
        _ body: Spool,
        encoding: String,
        folder: String,
        limit: WorkLimit = .checking
    ) throws -> Spool {
        try check(encoding)
        let coding: (ByteView, Spool, WorkLimit) throws -> Void
        switch encoding.lowercased() {
        case "gzip": coding = gzip
        case "zstd": coding = zstd
        default: return body
        }
        let output = Spool(folder: folder, memory: memory)
        try body.withView { try coding($0, output, limit) }
        return output
    }

    private static func gzip(_ body: ByteView, _ output: Spool, _ limit: WorkLimit) throws {
        var stream = z_stream()
        guard waypost_inflate_start(&stream, 31) == Z_OK else {
            throw HTTPError(status: 500, reason: "zlib could not be started")
        }
        defer { inflateEnd(&stream) }
        let input = body[0..<body.count].assumingMemoryBound(to: UInt8.self)
        // zlib's interface lacks const, but it only reads.
        stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.avail_in = UInt32(input.count)
        var block = [UInt8](repeating: 0, count: 64 << 10)
        var code = Z_OK
        while code == Z_OK {
            try limit.check()
            let count = block.withUnsafeMutableBufferPointer { block -> Int in
                stream.next_out = block.baseAddress
                stream.avail_out = UInt32(block.count)
                code = CZlib.inflate(&stream, Z_NO_FLUSH)
                return block.count - Int(stream.avail_out)
            }
            try append(block.prefix(count), to: output)
        }
        guard code == Z_STREAM_END, stream.avail_in == 0 else {
            throw HTTPError(status: 400, reason: "the body is not whole gzip")
        }
    }

    private static func zstd(_ body: ByteView, _ output: Spool, _ limit: WorkLimit) throws {
        guard let stream = ZSTD_createDStream(),
            ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, zstdWindowLog)) == 0
        else { throw HTTPError(status: 500, reason: "zstd could not be started") }
        defer { ZSTD_freeDStream(stream) }
        var block = [UInt8](repeating: 0, count: 128 << 10)
        var input = ZSTD_inBuffer(src: body[0..<body.count].baseAddress, size: body.count, pos: 0)
        var rest = 1
        while rest != 0 {
            try limit.check()
            let before = input.pos
            let (code, count) = block.withUnsafeMutableBytes { block -> (Int, Int) in
                var out = ZSTD_outBuffer(dst: block.baseAddress, size: block.count, pos: 0)
                return (ZSTD_decompressStream(stream, &out, &input), out.pos)
            }
            try append(block.prefix(count), to: output)
            let isStuck = input.pos == before && count == 0
            guard ZSTD_isError(code) == 0, !(isStuck && code != 0) else {
                throw HTTPError(
                    status: 400,
                    reason: "the body is not whole zstd, or needs a larger window than 8 MiB"
                )
            }
            rest = code
        }
        guard input.pos == input.size else {
            throw HTTPError(status: 400, reason: "bytes follow the end of the zstd body")
        }
    }

    private static func append(_ bytes: ArraySlice<UInt8>, to output: Spool) throws {
        guard output.count + bytes.count <= limit else {
            let reason = "the body inflates to more than \(limit >> 20) MiB"
            throw HTTPError(status: 413, reason: reason)
        }
        try bytes.withUnsafeBytes(output.append)
    }
}
