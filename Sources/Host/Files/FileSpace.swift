// Room on disks.
import CLinux
import Glibc

/// Room on a file system.
package enum FileSpace {
    /// Bytes that the process may still use; nil where that cannot be told.
    package static func free(_ path: String) -> Int64? {
        var figures = statvfs()
        guard statvfs(path, &figures) == 0 else { return nil }
        return bytes(blocks: UInt64(figures.f_bavail), of: UInt64(figures.f_frsize))
    }

    /// Bytes of the whole file system; nil where that cannot be told.
    package static func total(_ path: String) -> Int64? {
        var figures = statvfs()
        guard statvfs(path, &figures) == 0 else { return nil }
        return bytes(blocks: UInt64(figures.f_blocks), of: UInt64(figures.f_frsize))
    }

    /// At most an exbibyte: some file systems have no limit, and say so by numbers whose product nothing holds.
    static func bytes(blocks: UInt64, of size: UInt64) -> Int64 {
        let (bytes, isBeyond) = blocks.multipliedReportingOverflow(by: size)
        return Int64(min(isBeyond ? .max : bytes, 1 << 60))
    }

    /// Bytes of a file, 0 without one.
    package static func size(_ path: String) -> Int64 {
        var figures = stat()
        return stat(path, &figures) == 0 ? Int64(figures.st_size) : 0
    }
}
