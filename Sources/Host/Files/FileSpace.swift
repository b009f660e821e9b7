// Free and total space of file systems.
import CLinux
import Glibc

/// Space on a file system, in bytes.
package enum FileSpace {
    /// Returns the bytes available to this process; nil if statvfs(3) fails.
    package static func free(_ path: String) -> Int64? {
        var figures = statvfs()
        guard statvfs(path, &figures) == 0 else { return nil }
        return bytes(blocks: UInt64(figures.f_bavail), of: UInt64(figures.f_frsize))
    }

    /// Returns the size of the whole file system; nil if statvfs(3) fails.
    package static func total(_ path: String) -> Int64? {
        var figures = statvfs()
        guard statvfs(path, &figures) == 0 else { return nil }
        return bytes(blocks: UInt64(figures.f_blocks), of: UInt64(figures.f_frsize))
    }

    /// Returns at most an exbibyte: file systems without a limit report numbers whose product
    /// overflows.
    static func bytes(blocks: UInt64, of size: UInt64) -> Int64 {
        let (bytes, isBeyond) = blocks.multipliedReportingOverflow(by: size)
        return Int64(min(isBeyond ? .max : bytes, 1 << 60))
    }

    /// Returns the size of a file, 0 if it does not exist.
    package static func size(_ path: String) -> Int64 {
        var figures = stat()
        return stat(path, &figures) == 0 ? Int64(figures.st_size) : 0
    }
}
