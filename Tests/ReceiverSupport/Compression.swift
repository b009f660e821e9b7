// Bodies as a gateway compresses them.
import CZlib
import CZstd
package import Foundation

package func gzip(_ data: Data) -> Data {
    var stream = z_stream()
    _ = waypost_deflate_start(&stream, 6, 31, Z_DEFAULT_STRATEGY)
    defer { deflateEnd(&stream) }
    var input = Array(data)
    var output = [UInt8](repeating: 0, count: data.count + 1024)
    let count = input.withUnsafeMutableBufferPointer { input in
        output.withUnsafeMutableBufferPointer { output in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            deflate(&stream, Z_FINISH)
            return output.count - Int(stream.avail_out)
        }
    }
    return Data(output.prefix(count))
}

package func zstandard(_ data: Data) -> Data {
    var output = [UInt8](repeating: 0, count: ZSTD_compressBound(data.count))
    let count = Array(data).withUnsafeBytes {
        ZSTD_compress(&output, output.count, $0.baseAddress, $0.count, 3)
    }
    return Data(output.prefix(count))
}
