// Device numbers, and the kernel's write counter of a block device.
import CLinux
import Glibc

/// Major and minor number (makedev(3)) of the file system that a file or folder is on.
package struct DeviceNumber: Sendable, Equatable {
    package let major: Int
    package let minor: Int

    /// Its path in sysfs, if it is a disk or a partition.
    package var block: String { "/sys/dev/block/\(major):\(minor)" }

    package init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// Splits the device number that stat(2) returns.
    package init(_ device: UInt) {
        let device = Int(bitPattern: device)
        major = (device >> 8 & 0xFFF) | (device >> 32 & ~0xFFF)
        minor = (device & 0xFF) | (device >> 12 & ~0xFF)
    }

    /// Returns nil if stat(2) fails on the path.
    package init?(of path: String) {
        var figures = stat()
        guard stat(path, &figures) == 0 else { return nil }
        self.init(figures.st_dev)
    }
}

extension SystemFiles {
    /// Returns the bytes written to a disk or partition since boot (Documentation/block/stat.rst).
    ///
    /// `block` is its folder in sysfs. Returns nil if the file holds no valid count.
    package func writtenBytes(_ block: String) -> Int64? {
        let figures = text(block + "/stat")?.split(whereSeparator: \.isWhitespace) ?? []
        guard figures.count > 6, let sectors = Int64(figures[6]), (0..<1 << 50).contains(sectors)
        else { return nil }
        return sectors * 512
    }
}
