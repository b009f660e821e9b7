// Room on disks.
import Glibc

/// Room on a file system.
package enum FileSpace {
    /// Bytes that the process may still use; nil where that cannot be told.
    package static func free(_ path: String) -> Int64? {
        var figures = statvfs()
        guard statvfs(path, &figures) == 0 else { return nil }
        return Int64(figures.f_bavail) * Int64(figures.f_frsize)
    }

    /// Bytes of a file, 0 without one.
    package static func size(_ path: String) -> Int64 {
        var figures = stat()
        return stat(path, &figures) == 0 ? Int64(figures.st_size) : 0
    }
}
