// Reads and writes bytes at an offset of an open file, however many calls that takes.
import CLinux
import Glibc

/// Reads up to `count` bytes from `offset` on; fewer only at the file's end.
///
/// Errors name `path`.
package func readBytes(
    _ count: Int,
    of file: Int32,
    at offset: Int64,
    _ path: String
) throws(SystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
        let got = bytes.withUnsafeMutableBytes {
            pread(file, $0.baseAddress.map { $0 + done }, count - done, Int(offset) + done)
        }
        if got < 0, errno == EINTR { continue }
        guard got >= 0 else { throw SystemError.last("read", on: path) }
        if got == 0 { break }
        done += got
    }
    return done == count ? bytes : Array(bytes.prefix(done))
}

/// Writes all bytes from `offset` on; errors name `path`.
package func writeBytes(
    _ bytes: [UInt8],
    to file: Int32,
    at offset: Int64,
    _ path: String
) throws(SystemError) {
    var done = 0
    while done < bytes.count {
        let count = bytes.withUnsafeBytes {
            pwrite(file, $0.baseAddress.map { $0 + done }, $0.count - done, Int(offset) + done)
        }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw SystemError.last("write", on: path) }
        done += count
    }
}
