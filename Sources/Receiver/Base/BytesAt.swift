// Reads and writes bytes at a place of an open file, however many calls that takes.
import CLinux
import Glibc
import Host

/// Reads up to `count` bytes from `place` on; fewer only at the file's end.
///
/// Throws a `SystemError` that names `path`.
func readBytes(_ count: Int, of file: Int32, at place: Int64, _ path: String) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
        let got = bytes.withUnsafeMutableBytes {
            pread(file, $0.baseAddress.map { $0 + done }, count - done, Int(place) + done)
        }
        guard got >= 0 else { throw SystemError.last("read", on: path) }
        if got == 0 { break }
        done += got
    }
    return Array(bytes.prefix(done))
}

/// Writes all bytes from `place` on; throws a `SystemError` that names `path`.
func writeBytes(_ bytes: [UInt8], to file: Int32, at place: Int64, _ path: String) throws {
    var done = 0
    while done < bytes.count {
        let count = bytes.withUnsafeBytes {
            pwrite(file, $0.baseAddress.map { $0 + done }, $0.count - done, Int(place) + done)
        }
        guard count > 0 else { throw SystemError.last("write", on: path) }
        done += count
    }
}
